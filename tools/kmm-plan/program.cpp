// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/program.hpp"

#include "cli/explain.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/codes/codes.hpp"

namespace kmm::tool_plan {

cli::Program program() {
    cli::Program result;
    result.name = "kmm-plan";
    result.summary = "decide which nodes need which kernel module, and say why";
    result.description =
        "Reads Nodes, Modules and NodeModulesConfigs from a live cluster, a directory or documents, and computes "
        "what Kernel Module Management does with them. Changes nothing.\n\n"
        "A plan shows the settled state: the state of the cluster when every Pod has succeeded and nothing else has "
        "changed.";
    result.verbs = {show_verb(),      show_recipe_verb(),  why_verb(),           why_recipe_verb(),
                    graph_verb(),     dtk_map_verb(),      validate_verb(),      matrix_verb(),
                    render_verb(),    render_chart_verb(), render_recipe_verb(), diff_verb(),
                    preflight_verb(), images_verb(),       upgrade_verb(),       explain_verb()};
    result.topics = {cli::codes_topic("REASONS, FINDINGS AND ERRORS", plan::codes())};
    result.other_words = {{"apply", "kmm-upgrade apply: kmm-plan changes nothing"},
                          {"check", "kmm-plan validate, or preflight for images and kernels"},
                          {"describe", "kmm-plan why NODE MODULE"},
                          {"get", "kmm-plan show"},
                          {"lint", "kmm-plan validate"},
                          {"list", "kmm-plan show"},
                          {"ls", "kmm-plan show"},
                          {"plan", "kmm-plan show, or upgrade for an upgrade of a Module"},
                          {"start", "kmm-upgrade start: kmm-plan changes nothing"},
                          {"status", "kmm-plan show"},
                          {"template", "kmm-plan render chart CHART"},
                          {"verify", "kmm-plan validate, or preflight for images and kernels"}};
    result.environment = {
        {"SSL_CERT_FILE",
         "authorities for TLS in addition to the system's, where none is named for the server alone"},
        {"GITHUB_ACTIONS, GITLAB_CI", "which system --ci auto writes for"},
        {"GITHUB_OUTPUT, GITHUB_STEP_SUMMARY", "files that --ci github writes to"},
        {"REGISTRY_AUTH_FILE, DOCKER_CONFIG, XDG_RUNTIME_DIR",
         "where credentials for registries are looked for without --authfile"},
        {"http_proxy, https_proxy, all_proxy, no_proxy", "proxies, as curl reads them"}};
    result.examples = {
        {"kmm-plan show --cluster ./fleet", "one line per node and module"},
        {"kmm-plan why node-a drivers/kmm-hello --cluster ./fleet", "the facts behind one line"},
        {"kmm-plan show --context prod", "the same for a live cluster"},
        {"kubectl get nodes,modules -A -o json | kmm-plan show -f -", "the same for a dump of one"},
    };
    return result;
}

}  // namespace kmm::tool_plan
