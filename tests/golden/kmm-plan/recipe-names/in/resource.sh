# SPDX-License-Identifier: Apache-2.0
# Prints a SpecialResource with these values.
cat <<END
apiVersion: sro.openshift.io/v1beta1
kind: SpecialResource
metadata:
  name: named
spec:
  namespace: ${space:-named}
  chart:
    name: named
    version: 1.0.0
    repository:
      name: here
      url: file://.
  set:
    driver: $1
    kernelLabel: '${2:-}'
  nodeSelector:
    disk: ${disk:-fast}
END
