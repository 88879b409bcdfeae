// SPDX-License-Identifier: Apache-2.0
// A chart with values as the objects of a release: `helm template`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/chart/chart.hpp"
#include "recipe/chart/manifests.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::chart {

/// Kubernetes' version as templates see it. The default is that of Helm 3.22.0's release builds: their linker sets the
/// version of client-go in place of the v1.20.0 of the source.
struct KubeVersion {
    std::string version = "v1.37.0", major = "1", minor = "37";
};

/// "1.27", "v1.27.10+k3s1"; nullopt for what is none.
[[nodiscard]] std::optional<KubeVersion> parse_kube_version(std::string_view text);
/// What Helm takes for the API versions of a cluster that it does not ask.
[[nodiscard]] const std::vector<std::string>& default_api_versions();

/// A file of values that the user gives.
struct GivenValues {
    std::string place;   ///< its name, for errors
    std::string text;    ///< as it stands in the file
    tmpl::Value values;  ///< what it says
};

struct Release {
    std::string name = "release-name";
    std::string name_space = "default";
    KubeVersion kube_version;
    std::string version_hint = "--kube-version names the cluster's";  ///< where kube_version does not fit a chart
    std::vector<std::string> api_versions;  ///< besides the default ones
    bool is_helm_3_7 = false;  ///< as the Helm of the Special Resource Operator does it: .Files.Lines keeps the empty
                               ///< line at the end, see Nulls; imported values win; missing sub-charts are no error
    std::vector<GivenValues> given;  ///< where faults of values are looked for; the last one wins
    tmpl::Limits limits;
    bool is_upgrade = false;     ///< .Release.IsUpgrade in place of .Release.IsInstall
    bool skip_schemas = false;   ///< values are not compared with values.schema.json
    bool placeholders = false;  ///< for functions that give something else each time
    std::shared_ptr<tmpl::ParsedFiles> parsed;  ///< of earlier releases of the same charts; may be empty
    std::function<void(Diagnostic)> notice;  ///< hears of what is rarely meant; may be empty
};

struct Rendered {
    std::vector<Manifest> crds;  ///< of crds/: source and content alone
    std::vector<Manifest> objects;
    std::vector<Manifest> hooks;
};

/// Renders all templates. `values` are the user's; null deletes a default. Errors: data "bad-chart" (a library, a
/// missing sub-chart, a version of Kubernetes that does not fit), "bad-values", "values-schema", those of templates and
/// "bad-manifest".
[[nodiscard]] Rendered render_chart(Chart chart, const tmpl::Value& values, const Release& release);

/// Leaves what came of the files that match one of `patterns` (filepath.Match below the chart, "templates/a*.yaml"), in
/// the order of the patterns; hooks and files of crds/, without blanks at their end, stand among the objects then.
/// Error: usage "bad-value" for a pattern without a match.
void keep_files(Rendered& rendered, const std::vector<std::string>& patterns);

/// What one template of the chart itself prints, as it is, not split into objects. `name` is that of its file:
/// "templates/x.yaml".
[[nodiscard]] std::string render_bare(Chart chart, const tmpl::Value& values, const Release& release,
                                      const std::string& name);

/// Whether objects with text that a CI system would take for a command (base/ci_text.hpp) are written as JSON without
/// such text: the same object. Documents of crds/, too.
enum class Inert { no, yes };
/// The output of `helm template`. Error: data "bad-manifest" for a file of crds/ with such text that is not YAML.
[[nodiscard]] std::string release_text(const Rendered& rendered, bool include_crds, Inert inert = Inert::no);

enum class ObjectForm { list, lines, names };
/// The same objects as a List in JSON, as JSON lines, or as lines with "kind/name". Documents without an object are
/// left out. Error: data "bad-manifest" for a file of crds/ that is not YAML.
[[nodiscard]] std::string release_objects(const Rendered& rendered, bool include_crds, ObjectForm form);

/// Whether Helm takes a name for a release: at most 53 characters, as DNS has them.
[[nodiscard]] bool is_release_name(std::string_view name);

}  // namespace kmm::recipe::chart
