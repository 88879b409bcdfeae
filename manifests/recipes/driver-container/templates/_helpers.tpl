{{- /* The image of the driver for the kernel of this copy. */ -}}
{{- define "image" -}}
{{- $given := "" -}}
{{- range .Values.specialresource.spec.configuration -}}
{{- if eq .name "image" }}{{ $given = first .value }}{{ end -}}
{{- end -}}
{{- if $given -}}
{{ $given }}:{{ .Values.kernelFullVersion | replace "+" "_" }}
{{- else if .Capabilities.APIVersions.Has "image.openshift.io/v1" -}}
image-registry.openshift-image-registry.svc:5000/{{ .Release.Namespace }}/{{ .Release.Name }}:{{ .Values.kernelFullVersion | replace "+" "_" }}
{{- else -}}
{{ fail "no registry is known: give spec.configuration an entry image with the repository of the driver, or, on OpenShift, apiVersions with image.openshift.io/v1 in the facts" }}
{{- end -}}
{{- end -}}
