// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/field_types.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

enum class FieldType {
    flag,
    integer,
    long_integer,
    number,
    text,
    duration,           ///< null is none: Go reads the text of one there
    optional_duration,  ///< a pointer in Go
    texts,
    text_map,
    flag_map,
    list,
    mapping
};

/// Fields of one type: paths with blanks between.
struct FieldRow {
    FieldType type;
    std::string_view paths;
};

/// Source: ClusterConfiguration of kubeadm.k8s.io v1beta3 and v1beta4. Of extraArgs see look_at_extra_args.
constexpr FieldRow k_cluster_fields[] = {
    {FieldType::mapping, "apiServer controllerManager scheduler etcd etcd.local etcd.external networking dns proxy"},
    {FieldType::text,
     "kubernetesVersion controlPlaneEndpoint clusterName certificatesDir imageRepository encryptionAlgorithm "
     "networking.serviceSubnet networking.podSubnet networking.dnsDomain dns.imageRepository dns.imageTag "
     "etcd.local.dataDir etcd.local.imageRepository etcd.local.imageTag etcd.external.caFile etcd.external.certFile "
     "etcd.external.keyFile"},
    {FieldType::texts,
     "apiServer.certSANs etcd.local.serverCertSANs etcd.local.peerCertSANs etcd.external.endpoints"},
    {FieldType::list,
     "apiServer.extraVolumes controllerManager.extraVolumes scheduler.extraVolumes apiServer.extraEnvs "
     "controllerManager.extraEnvs scheduler.extraEnvs etcd.local.extraEnvs"},
    {FieldType::optional_duration,
     "apiServer.timeoutForControlPlane certificateValidityPeriod caCertificateValidityPeriod"},
    {FieldType::flag, "dns.disabled proxy.disabled"},
    {FieldType::flag_map, "featureGates"},
};

/// Source: KubeletConfiguration of kubelet.config.k8s.io/v1beta1.
constexpr FieldRow k_kubelet_fields[] = {
    {FieldType::mapping,
     "authentication authentication.x509 authentication.webhook authentication.anonymous authorization "
     "authorization.webhook logging memorySwap tracing crashLoopBackOff userNamespaces"},
    {FieldType::text,
     "staticPodPath podLogsDir staticPodURL address tlsCertFile tlsPrivateKeyFile tlsMinVersion healthzBindAddress "
     "clusterDomain kubeletCgroups systemCgroups cgroupRoot cgroupDriver cpuManagerPolicy memoryManagerPolicy "
     "topologyManagerPolicy topologyManagerScope hairpinMode podCIDR resolvConf contentType "
     "configMapAndSecretChangeDetectionStrategy systemReservedCgroup kubeReservedCgroup showHiddenMetricsForVersion "
     "volumePluginDir providerID reservedSystemCPUs containerLogMaxSize containerRuntimeEndpoint "
     "imageServiceEndpoint imagePullCredentialsVerificationPolicy authentication.x509.clientCAFile "
     "authorization.mode memorySwap.swapBehavior logging.format tracing.endpoint"},
    {FieldType::integer,
     "port readOnlyPort registryPullQPS registryBurst eventRecordQPS eventBurst healthzPort oomScoreAdj "
     "nodeLeaseDurationSeconds imageGCHighThresholdPercent imageGCLowThresholdPercent maxPods podsPerCore kubeAPIQPS "
     "kubeAPIBurst maxParallelImagePulls evictionMaxPodGracePeriod iptablesMasqueradeBit iptablesDropBit "
     "containerLogMaxFiles containerLogMaxWorkers nodeStatusMaxImages tracing.samplingRatePerMillion"},
    {FieldType::long_integer, "podPidsLimit maxOpenFiles userNamespaces.idsPerPod"},
    {FieldType::number, "memoryThrottlingFactor"},
    {FieldType::flag,
     "rotateCertificates serverTLSBootstrap enableDebuggingHandlers enableContentionProfiling cgroupsPerQOS runOnce "
     "cpuCFSQuota serializeImagePulls enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains "
     "failSwapOn kernelMemcgNotification enableSystemLogHandler enableSystemLogQuery enableProfilingHandler "
     "enableDebugFlagsHandler seccompDefault registerNode localStorageCapacityIsolation enableServer "
     "mergeDefaultEvictionSettings failCgroupV1 singleProcessOOMKill authentication.webhook.enabled "
     "authentication.anonymous.enabled"},
    {FieldType::duration,
     "syncFrequency fileCheckFrequency httpCheckFrequency streamingConnectionIdleTimeout nodeStatusUpdateFrequency "
     "nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge volumeStatsAggPeriod cpuManagerReconcilePeriod "
     "runtimeRequestTimeout evictionPressureTransitionPeriod shutdownGracePeriod shutdownGracePeriodCriticalPods "
     "authentication.webhook.cacheTTL authorization.webhook.cacheAuthorizedTTL "
     "authorization.webhook.cacheUnauthorizedTTL"},
    {FieldType::optional_duration,
     "cpuCFSQuotaPeriod containerLogMonitorInterval crashLoopBackOff.maxContainerRestartPeriod"},
    {FieldType::texts,
     "tlsCipherSuites clusterDNS allowedUnsafeSysctls enforceNodeAllocatable preloadedImagesVerificationAllowlist"},
    {FieldType::text_map,
     "cpuManagerPolicyOptions topologyManagerPolicyOptions qosReserved evictionHard evictionSoft "
     "evictionSoftGracePeriod evictionMinimumReclaim systemReserved kubeReserved"},
    {FieldType::flag_map, "featureGates"},
    {FieldType::list, "reservedMemory registerWithTaints shutdownGracePeriodByPodPriority"},
};

/// Source: KubeProxyConfiguration of kubeproxy.config.k8s.io/v1alpha1.
constexpr FieldRow k_proxy_fields[] = {
    {FieldType::mapping, "clientConnection iptables ipvs nftables winkernel detectLocal conntrack logging"},
    {FieldType::text,
     "hostnameOverride bindAddress healthzBindAddress metricsBindAddress showHiddenMetricsForVersion mode "
     "detectLocalMode clusterCIDR portRange clientConnection.kubeconfig clientConnection.acceptContentTypes "
     "clientConnection.contentType ipvs.scheduler detectLocal.bridgeInterface detectLocal.interfaceNamePrefix "
     "logging.format"},
    {FieldType::flag,
     "bindAddressHardFail enableProfiling iptables.masqueradeAll iptables.localhostNodePorts ipvs.strictARP "
     "nftables.masqueradeAll conntrack.tcpBeLiberal"},
    {FieldType::integer,
     "clientConnection.burst iptables.masqueradeBit nftables.masqueradeBit oomScoreAdj conntrack.maxPerCore "
     "conntrack.min"},
    {FieldType::number, "clientConnection.qps"},
    {FieldType::duration,
     "configSyncPeriod iptables.syncPeriod iptables.minSyncPeriod ipvs.syncPeriod ipvs.minSyncPeriod ipvs.tcpTimeout "
     "ipvs.tcpFinTimeout ipvs.udpTimeout nftables.syncPeriod nftables.minSyncPeriod conntrack.udpTimeout "
     "conntrack.udpStreamTimeout"},
    {FieldType::optional_duration, "conntrack.tcpEstablishedTimeout conntrack.tcpCloseWaitTimeout"},
    {FieldType::texts, "nodePortAddresses ipvs.excludeCIDRs"},
    {FieldType::flag_map, "featureGates"},
};

/// As Go's time.ParseDuration has it: "1h2m3.5s", "-10ms", "0".
bool is_go_duration(std::string_view text) {
    constexpr std::string_view k_digits = "0123456789";
    if (text.starts_with('-') || text.starts_with('+')) { text.remove_prefix(1); }
    if (text == "0") { return true; }
    bool has_part = false;
    while (!text.empty()) {
        const auto number = text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size()));
        if (number.find_first_of(k_digits) == std::string_view::npos ||
            std::count(number.begin(), number.end(), '.') > 1) {
            return false;
        }
        text.remove_prefix(number.size());
        const auto unit = text.substr(0, std::min(text.find_first_of("0123456789."), text.size()));
        constexpr std::string_view k_units[] = {"ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"};
        if (std::find(std::begin(k_units), std::end(k_units), unit) == std::end(k_units)) { return false; }
        text.remove_prefix(unit.size());
        has_part = true;
    }
    return has_part;
}

template <typename Integer>
bool is_integer(const Node& node) {
    if (const auto number = node.as_int()) {
        return *number >= std::numeric_limits<Integer>::min() && *number <= std::numeric_limits<Integer>::max();
    }
    return node.kind() == value::Kind::floating && node.text().ends_with(".0");  // 110.0 is read as 110
}

std::string_view expected_text(FieldType type) {
    switch (type) {
        case FieldType::flag: return "true or false";
        case FieldType::integer: return "an integer of 32 bits";
        case FieldType::long_integer: return "an integer";
        case FieldType::number: return "a number";
        case FieldType::text: return "a string";
        case FieldType::duration:
        case FieldType::optional_duration: return "a duration as 1m30s";
        case FieldType::texts:
        case FieldType::list: return "a list";
        case FieldType::text_map:
        case FieldType::flag_map:
        case FieldType::mapping: break;
    }
    return "a mapping";
}

bool is_of(FieldType type, const Node& node) {
    switch (type) {
        case FieldType::flag: return node.as_bool().has_value();
        case FieldType::integer: return is_integer<std::int32_t>(node);
        case FieldType::long_integer: return is_integer<std::int64_t>(node);
        case FieldType::number: return node.as_int() || node.kind() == value::Kind::floating;
        case FieldType::text: return node.is_string();
        case FieldType::duration:
        case FieldType::optional_duration: return node.is_string() && is_go_duration(node.text());
        case FieldType::texts:
        case FieldType::list: return node.is_sequence();
        case FieldType::text_map:
        case FieldType::flag_map:
        case FieldType::mapping: break;
    }
    return node.is_mapping();
}

void look_at_field(const Node& node, FieldType type, const std::string& place, std::vector<std::string>& wrong) {
    if (node.is_null() && type != FieldType::duration) { return; }
    if (!is_of(type, node)) {
        wrong.push_back(fmt::format("{}: expected {}, found {}", place, expected_text(type), found_there(node)));
        return;
    }
    if (type == FieldType::texts) {
        for (const auto& item : node.items()) { look_at_field(item, FieldType::text, place, wrong); }
    } else if (type == FieldType::text_map || type == FieldType::flag_map) {
        for (const auto& member : node.members()) {
            look_at_field(member.value, type == FieldType::text_map ? FieldType::text : FieldType::flag,
                          fmt::format("{}.{}", place, base::escape(member.key)), wrong);
        }
    }
}

/// nullptr if it is not there, or what should hold it is not a mapping.
const Node* field_at(const Node& root, std::string_view path) {
    const auto* node = &root;
    for (const auto name : base::split(path, '.')) {
        node = node->is_mapping() ? node->find(name) : nullptr;
        if (node == nullptr) { return nullptr; }
    }
    return node;
}

std::vector<std::string> wrong_fields(const Node& root, std::span<const FieldRow> rows) {
    std::vector<std::string> wrong;
    for (const auto& row : rows) {
        for (const auto path : base::split(row.paths, ' ')) {
            const auto* node = field_at(root, path);
            if (node != nullptr) { look_at_field(*node, row.type, std::string(path), wrong); }
        }
    }
    return wrong;
}

}  // namespace

std::string found_there(const Node& node) {
    if (node.is_mapping() || node.is_sequence()) { return fmt::format("a {}", value::kind_name(node.kind())); }
    if (node.is_null()) { return "null"; }
    return fmt::format("the {} '{}'", value::kind_name(node.kind()), base::escape(node.text()));
}

std::vector<std::string> wrong_cluster_fields(const Node& cluster_configuration) {
    return wrong_fields(cluster_configuration, k_cluster_fields);
}

std::vector<std::string> wrong_kubelet_fields(const Node& kubelet_configuration) {
    return wrong_fields(kubelet_configuration, k_kubelet_fields);
}

std::vector<std::string> wrong_proxy_fields(const Node& proxy_configuration) {
    return wrong_fields(proxy_configuration, k_proxy_fields);
}

}  // namespace kmm::kubernetes
