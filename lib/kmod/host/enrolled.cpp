// SPDX-License-Identifier: Apache-2.0
// The certificates that the firmware holds for the kernel. Source: UEFI 2.10, 32.4.1 (Signature
// Database); Linux security/integrity/platform_certs/efi_parser.c, load_uefi.c.
#include <array>
#include <string_view>
#include <utility>

#include "kmod/host/keyring.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kmod {

namespace {

constexpr std::size_t k_variable_bytes_max = 1U << 20U;
constexpr std::size_t k_attribute_bytes = 4;     // in front of each variable of efivarfs
constexpr std::size_t k_list_header_bytes = 28;  // EFI_SIGNATURE_LIST: type, three sizes
constexpr std::size_t k_owner_bytes = 16;        // in front of each entry
constexpr std::string_view k_x509_type("\xa1\x59\xc0\xa5\xe4\x94\xa7\x4a\x87\xb5\xab\x15\x5c\x2b\xf0\x72", 16);

struct Variable {
    std::string_view path;
    std::size_t attribute_bytes;
};
/// The list of shim as the boot services left it, whole or as a variable, and the keys of the firmware's owner.
constexpr std::array<Variable, 3> k_trusted{
    {{"/firmware/efi/mok-variables/MokListRT", 0},
     {"/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23", k_attribute_bytes},
     {"/firmware/efi/efivars/db-d719b2cb-3d3d-4596-a3bc-dad00e67656f", k_attribute_bytes}}};
/// The same for certificates that are revoked.
constexpr std::array<Variable, 3> k_revoked{
    {{"/firmware/efi/mok-variables/MokListXRT", 0},
     {"/firmware/efi/efivars/MokListXRT-605dab50-e046-4300-abb6-3dd810dd8b23", k_attribute_bytes},
     {"/firmware/efi/efivars/dbx-d719b2cb-3d3d-4596-a3bc-dad00e67656f", k_attribute_bytes}}};

std::size_t number_at(std::string_view bytes, std::size_t at) {
    std::size_t number = 0;
    for (std::size_t i = 4; i-- > 0;) number = number << 8U | static_cast<unsigned char>(bytes[at + i]);
    return number;
}

/// Of the lists in `bytes`, one behind the other; what is damaged ends them, as for the kernel.
void add_lists(std::string_view bytes, std::vector<EnrolledCertificate>& found) {
    while (bytes.size() > k_list_header_bytes) {
        const std::size_t size = number_at(bytes, 16), header = number_at(bytes, 20), each = number_at(bytes, 24);
        if (size < k_list_header_bytes || size > bytes.size() || header > size - k_list_header_bytes) return;
        std::string_view entries = bytes.substr(k_list_header_bytes + header, size - k_list_header_bytes - header);
        if (bytes.starts_with(k_x509_type) && each > k_owner_bytes) {
            for (; entries.size() >= each; entries.remove_prefix(each)) {
                if (auto one = read_enrolled(entries.substr(k_owner_bytes, each - k_owner_bytes)))
                    found.push_back(std::move(*one));
            }
        }
        bytes.remove_prefix(size);
    }
}

std::vector<EnrolledCertificate> certificates_in(const std::array<Variable, 3>& variables, const HostPaths& host) {
    std::vector<EnrolledCertificate> found;
    for (const auto& [path, skipped] : variables) {
        const auto bytes = read_raw(host.sys + std::string(path), k_variable_bytes_max);
        if (bytes && bytes->size() > skipped) add_lists(std::string_view(*bytes).substr(skipped), found);
    }
    return found;
}

}  // namespace

std::vector<EnrolledCertificate> enrolled_certificates(const HostPaths& host) {
    return certificates_in(k_trusted, host);
}

std::vector<EnrolledCertificate> revoked_certificates(const HostPaths& host) {
    return certificates_in(k_revoked, host);
}

}  // namespace kmm::kmod
