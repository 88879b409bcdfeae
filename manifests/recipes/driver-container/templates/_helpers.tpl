{{- /* The kernel as a tag has it: no '+', no '~'. */ -}}
{{- define "kernel" -}}
{{ .Values.kernelFullVersion | replace "+" "_" | replace "~" "_" }}
{{- end -}}
{{- /* The tag of an image that is built in the cluster: another version is another image. */ -}}
{{- define "tag" -}}
{{ include "kernel" . }}{{ with .Values.specialresource.spec.metadata.version }}-{{ replace "+" "_" . }}{{ end }}
{{- end -}}
{{- /* The image of the driver for the kernel of this copy. */ -}}
{{- define "image" -}}
{{- $given := "" -}}
{{- range .Values.specialresource.spec.configuration -}}
{{- if eq .name "image" }}{{ $given = first .value }}{{ end -}}
{{- end -}}
{{- if $given -}}
{{- if regexMatch "@|:[^/]*$" $given -}}
{{ fail (printf "spec.configuration: image: expected a repository without a tag, found %q: the kernel is the tag" $given) }}
{{- end -}}
{{ $given }}:{{ include "kernel" . }}
{{- else if .Capabilities.APIVersions.Has "image.openshift.io/v1" -}}
image-registry.openshift-image-registry.svc:5000/{{ .Release.Namespace }}/{{ .Release.Name }}:{{ include "tag" . }}
{{- else -}}
{{ fail "no registry is known: give spec.configuration an entry image with the repository of the driver, or, on OpenShift, apiVersions with image.openshift.io/v1 in the facts" }}
{{- end -}}
{{- end -}}
{{- /* Behind the name of a build: one from another source is another object, as a Job cannot be changed, and a BuildConfig starts its Build when it is created. */ -}}
{{- define "build" -}}
{{ list .Values.specialresource.spec.driverContainer.source.git .Values.specialresource.spec.driverContainer.buildArgs (include "image" .) | toJson | sha256sum | trunc 8 }}
{{- end -}}
{{- /* A path as a shell takes it for one: in quotes if it has blanks or signs. Of those, patterns may have * and ?. */ -}}
{{- define "word" -}}
{{- if regexMatch "^[A-Za-z0-9_.,:=@%+/*?-]+$" . -}}{{ . }}{{- else -}}'{{ replace "'" "'\\''" . }}'{{- end -}}
{{- end -}}
