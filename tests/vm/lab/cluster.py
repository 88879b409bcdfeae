# SPDX-License-Identifier: Apache-2.0
"""Writes a directory cluster for the lab's nodes, as a person would."""
NODE = """apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels:
    kubernetes.io/hostname: {name}
    kubernetes.io/arch: amd64
    role: worker
status:
  nodeInfo:
    kernelVersion: {kernel}
    bootID: {boot}
    architecture: amd64
"""
MODULE = """apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata:
  name: {name}
  namespace: drivers
spec:
  moduleLoader:
    container:
      version: {version}
      modprobe:
        moduleName: {module}{parameters}
      kernelMappings:
        # every kernel: the image has a directory for each
        - regexp: '^.+$'
          containerImage: {image}
          registryTLS:
            insecure: true{extra}
  selector:
    role: worker
"""


def write_nodes(directory, lab, boot_ids):
    """nodes/NAME.yaml for {name: boot id}."""
    where = directory / "nodes"
    where.mkdir(parents=True, exist_ok=True)
    for name, boot in boot_ids.items():
        (where / f"{name}.yaml").write_text(NODE.format(name=name, kernel=lab.kernel, boot=boot))


def write_module(directory, image, version, module="kmm_hello", parameters=(), remove=()):
    """modules/NAME.yaml in namespace drivers; NAME is the module's name with dashes."""
    name = module.replace("_", "-")
    where = directory / "modules"
    where.mkdir(parents=True, exist_ok=True)
    words = "".join(f"\n          - {p}" for p in parameters)
    gone = "".join(f"\n            - {m}" for m in remove)
    (where / f"{name}.yaml").write_text(MODULE.format(
        name=name, module=module, version=version, image=image,
        parameters=f"\n        parameters:{words}" if parameters else "",
        extra=f"\n          inTreeModulesToRemove:{gone}" if remove else ""))
    return where / f"{name}.yaml"


def module_config(image, kernel, module="kmm_hello", parameters=(), remove=(), insecure=True):
    """A ModuleConfig document for kmm-worker."""
    lines = ["kernelVersion: " + kernel, "containerImage: " + image, f"insecurePull: {str(insecure).lower()}"]
    if remove:
        lines += ["inTreeModulesToRemove:"] + [f"  - {m}" for m in remove]
    lines += ["modprobe:", f"  moduleName: {module}", "  dirName: /opt"]
    if parameters:
        lines += ["  parameters:"] + [f"    - {p}" for p in parameters]
    return "\n".join(lines) + "\n"
