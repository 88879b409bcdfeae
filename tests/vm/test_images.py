# SPDX-License-Identifier: Apache-2.0
"""Images that lie, from a real registry: nothing is loaded, nothing stays on the node's disk."""
from lab.testing import SingleCase

NODE = "node-a"


class Hostile(SingleCase):
    def refused(self, image, exit_code, code=None):
        before = self.files_on(NODE)
        error = self.load(NODE, image, expect=exit_code)
        if code:
            self.assertEqual(error["code"], code)
        self.assertIsNone(self.live(NODE))
        self.assertEqual(self.files_on(NODE), before, "files were left on the node")
        self.assertEqual(self.fleet.ssh(NODE, "find / -xdev -name 'kmm-escaped*' | grep .").returncode, 1)
        return error

    def test_a_tampered_layer(self):
        self.refused(self.image("kmm-hostile", "tampered"), 76, "digest-mismatch")

    def test_a_manifest_that_is_not_the_one_of_the_digest(self):
        self.refused(self.by_digest("kmm-hostile", "wrong-manifest"), 76, "digest-mismatch")

    def test_a_path_that_escapes(self):
        self.refused(self.image("kmm-hostile", "escape"), 16)

    def test_eight_tebibytes_of_nothing(self):
        self.refused(self.image("kmm-hostile", "sparse"), 16)

    def test_a_gzip_that_ends_early(self):
        self.refused(self.image("kmm-hostile", "truncated"), 65)

    def test_a_digest_nobody_has(self):
        self.refused(self.registry.reference("kmm-hello", "sha256:" + "0" * 64), 66, "image-not-found")

    def test_the_good_image_by_digest_still_loads(self):
        self.load(NODE, self.by_digest("kmm-hello", "v2"))
        self.assertEqual(self.live(NODE), self.file_identity("v2"))

    def test_nothing_is_left_after_a_good_load_and_unload(self):
        before = self.files_on(NODE)
        config = self.config(self.image("kmm-hello", "v1"))
        self.worker(NODE, "load -", config)
        self.worker(NODE, "unload -", config)
        left = set(self.files_on(NODE).split()) - set(before.split())
        self.assertEqual([f for f in left if f.endswith(".ko")], [], "module files were left on the node")


class Tools(SingleCase):
    """The same module in images that five tools and formats made."""

    def loads(self, reference):
        result = self.load(NODE, reference)
        self.assertEqual(result["outcome"], "loaded")
        self.assertEqual(self.live(NODE), self.file_identity("v2"))
        return result

    def test_umoci(self):
        self.loads(self.image("kmm-other", "umoci"))

    def test_skopeo_and_dockers_schema_2(self):
        self.loads(self.image("kmm-other", "schema2"))

    def test_layers_of_zstd(self):
        result = self.loads(self.image("kmm-other", "zstd"))
        self.assertEqual(result["image"]["digest"], self.digests["kmm-other:zstd"])

    def test_an_index_of_two_platforms(self):
        self.loads(self.image("kmm-multi", "v2"))

    def test_twenty_layers_with_whiteouts(self):
        image = self.image("kmm-other", "layers")
        self.loads(image)
        error = self.load(NODE, image, expect=66, module="kmm_busy")
        self.assertEqual(error["code"], "module-not-in-image", "a later layer has taken it away")

    def test_without_a_registry(self):
        for name, reference in (("docker.tar", "docker-archive:{}"), ("layout-zstd", "oci:{}:zstd")):
            with self.subTest(name):
                self.fleet.put(NODE, self.lab.dir / "images" / name, "/run/image")
                self.addCleanup(self.fleet.shell, NODE, "rm -rf /run/image")
                self.loads(reference.format(f"/run/image/{name}"))
                self.fleet.clean()
                self.fleet.shell(NODE, "rm -rf /run/image")


class Tls(SingleCase):
    def test_the_ca_of_the_node_is_used(self):
        image = self.image("kmm-hello", "v2").replace(str(self.registry.port), str(self.registry.tls_port))
        self.worker(NODE, "load -", self.config(image, insecure=False))
        self.assertEqual(self.live(NODE), self.file_identity("v2"))

    def test_plain_http_is_not_used_unasked(self):
        error = self.worker(NODE, "load -", self.config(self.image("kmm-hello", "v2"), insecure=False), expect=76)
        self.assertIsNone(self.live(NODE))
        self.assertEqual(error["code"], "tls")
        self.assertIn("--insecure", error["hint"])
