# SPDX-License-Identifier: Apache-2.0
"""A small client of the API server: what a test needs of kubectl, with the warnings that the server sent."""
import base64
import http.client
import json
import pathlib
import ssl
import threading
import urllib.parse

from lab.common import LabError

STRICT = {"fieldValidation": "Strict"}
DRY_RUN = {"dryRun": "All"}


class ApiError(LabError):
    """The server answered with an error: `status` is the HTTP code, `document` what it sent."""

    def __init__(self, what, status, document):
        self.status, self.document = status, document
        text = document.get("message") if isinstance(document, dict) else None
        super().__init__(f"{what}: {status} {text or document}")

    @property
    def reason(self):
        return self.document.get("reason") if isinstance(self.document, dict) else None


class Api:
    """A connection a thread, kept alive. `warnings` collects the Warning headers of all answers, `requests` counts."""

    def __init__(self, directory, token=None):
        self.dir = pathlib.Path(directory)
        where = json.loads((self.dir / "cluster.json").read_text())
        self.port, self.token = where["port"], token
        self.context = ssl.create_default_context(cafile=str(self.dir / "pki/ca.crt"))
        if token is None:
            self.context.load_cert_chain(self.dir / "pki/admin.crt", self.dir / "pki/admin.key")
        self.warnings, self.requests = [], 0
        self._local, self._kinds = threading.local(), {}

    def connect(self, timeout=60):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.context)

    def _headers(self, media):
        headers = {"Accept": "application/json", "User-Agent": "kmm-tools-testbed"}
        if media:
            headers["Content-Type"] = media
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def raw(self, method, path, body=None, media=None, query=None):
        """One request: (status, bytes). A connection that the server closed meanwhile is opened again, once."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        if body is not None and not isinstance(body, (bytes, str)):
            body, media = json.dumps(body), media or "application/json"
        for last in (False, True):
            connection = getattr(self._local, "connection", None)
            fresh = connection is None
            if fresh:
                connection = self._local.connection = self.connect()
            try:
                connection.request(method, path, body, self._headers(media))
                answer = connection.getresponse()
                data = answer.read()
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                self._local.connection = None
                if last or fresh:
                    raise
        self.requests += 1
        self.warnings += answer.headers.get_all("Warning") or []
        return answer.status, data

    def request(self, method, path, body=None, media=None, query=None):
        """One request: the JSON document of the answer; an ApiError if the server refuses."""
        status, data = self.raw(method, path, body, media, query)
        try:
            document = json.loads(data) if data else {}
        except ValueError:
            document = data.decode("utf-8", "replace")
        if status >= 300:
            raise ApiError(f"{method} {path}", status, document)
        return document

    def get(self, path, **query):
        return self.request("GET", path, query=query)

    def ready(self):
        try:
            return self.raw("GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def path(self, api_version, kind, namespace=None, name=None):
        """The path of objects of a kind, by the server's own discovery document."""
        if (api_version, kind) not in self._kinds:
            root = "/api/" if "/" not in api_version else "/apis/"
            for entry in self.get(root + api_version)["resources"]:
                if "/" not in entry["name"]:
                    self._kinds[api_version, entry["kind"]] = (root + api_version, entry["name"], entry["namespaced"])
        if (api_version, kind) not in self._kinds:
            raise LabError(f"the server has no kind {kind} in {api_version}")
        base, plural, namespaced = self._kinds[api_version, kind]
        if namespaced and namespace:
            base += f"/namespaces/{namespace}"
        return f"{base}/{plural}" + (f"/{name}" if name else "")

    def path_of(self, thing, named=True):
        meta = thing["metadata"]
        return self.path(
            thing["apiVersion"], thing["kind"], meta.get("namespace", "default"), meta["name"] if named else None
        )

    def create(self, thing, **query):
        return self.request("POST", self.path_of(thing, False), thing, query=dict(STRICT, **query))

    def replace(self, thing, **query):
        return self.request("PUT", self.path_of(thing), thing, query=dict(STRICT, **query))

    def apply(self, thing, manager="testbed", **query):
        """Server-side apply, with strict field validation."""
        return self.request("PATCH", self.path_of(thing), json.dumps(thing), "application/apply-patch+yaml",
                            dict(STRICT, fieldManager=manager, force="true", **query))

    def patch(self, path, change, **query):
        """A merge patch."""
        return self.request("PATCH", path, json.dumps(change), "application/merge-patch+json", query)

    def delete(self, path, absent_ok=True, **options):
        """Deletes an object, or all objects of a collection; options are those of DeleteOptions."""
        try:
            return self.request(
                "DELETE", path, dict(options, kind="DeleteOptions", apiVersion="v1") if options else None
            )
        except ApiError as error:
            if error.status == 404 and absent_ok:
                return None
            raise

    def items(self, path, limit=500, **query):
        """All objects of a collection, page by page."""
        more = None
        while True:
            page = self.get(path, limit=limit, **dict(query, **({"continue": more} if more else {})))
            yield from page.get("items") or []
            more = page["metadata"].get("continue")
            if not more:
                return

    def watch(self, path, version, timeout=300, **query):
        """(type, object) of each event after a resource version, until the server ends the watch."""
        connection = self.connect(timeout + 15)
        try:
            query = dict(
                query, watch="true", resourceVersion=version, timeoutSeconds=timeout, allowWatchBookmarks="true"
            )
            connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}", headers=self._headers(None))
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError(f"watch {path}", answer.status, answer.read().decode("utf-8", "replace"))
            while line := answer.readline():
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()


def kubeconfig(directory, port, token):
    """A kubeconfig for the tools: context `admin` with a client certificate (the current one), `token` with a token."""
    pki = pathlib.Path(directory) / "pki"
    inline = {
        name: base64.b64encode((pki / name).read_bytes()).decode() for name in ("ca.crt", "admin.crt", "admin.key")
    }
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "admin", "preferences": {},
        "clusters": [{"name": "testbed", "cluster": {"server": f"https://127.0.0.1:{port}",
                                                     "certificate-authority-data": inline["ca.crt"]}}],
        "users": [{"name": "admin", "user": {"client-certificate-data": inline["admin.crt"],
                                             "client-key-data": inline["admin.key"]}},
                  {"name": "token", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": "testbed", "user": name}} for name in ("admin", "token")],
    }, indent=2) + "\n"
