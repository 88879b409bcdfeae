// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/certificates.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/manifests.hpp"
#include "sys/directory.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::kubeadm {
namespace {

template <auto Free>
struct FreeBy {
    template <typename Object>
    void operator()(Object* object) const noexcept {
        Free(object);
    }
};

constexpr const char* k_kubeconfigs[] = {"admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf",
                                         "kubelet.conf"};

std::string common_name_of(const X509* certificate) {
    const X509_NAME* name = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    if (at < 0) return {};
    unsigned char* text = nullptr;
    const int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (length < 0) return {};
    std::string made(text, text + length);
    OPENSSL_free(text);
    return made;
}

Certificate unreadable(const std::string& file, std::string problem) {
    Certificate certificate;
    certificate.file = file;
    certificate.problem = std::move(problem);
    return certificate;
}

Certificate certificate_in(const std::string& file, std::string_view pem) {
    auto read = read_certificate(pem);
    if (!read) return unreadable(file, "expected a certificate in PEM form");
    read->file = file;
    return *read;
}

Certificate certificate_file(const Place& place, const std::string& file) {
    try {
        return certificate_in(file, place.read(file));
    } catch (const Error& error) {
        return unreadable(file, error.what());
    }
}

void add_directory(const Place& place, const std::string& directory, std::vector<Certificate>& found) {
    try {
        for (const std::string& name : place.list(directory)) {
            if (name.ends_with(".crt")) found.push_back(certificate_file(place, directory + "/" + name));
        }
    } catch (const Error& error) {
        found.push_back(unreadable(directory, error.what()));
    }
}

}  // namespace

std::optional<Certificate> read_certificate(std::string_view pem) {
    const std::unique_ptr<BIO, FreeBy<BIO_free>> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const std::unique_ptr<X509, FreeBy<X509_free>> certificate(
        bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
    ERR_clear_error();
    std::tm until{};
    if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &until) != 1) return std::nullopt;
    Certificate made;
    made.common_name = common_name_of(certificate.get());
    made.not_after = ::timegm(&until);
    return made;
}

Certificate client_certificate(const Place& place, const std::string& kubeconfig) {
    try {
        Diagnostics faults;
        const auto documents = value::read_any(place.read(kubeconfig), kubeconfig, faults);
        if (!faults.empty() || documents.size() != 1) return unreadable(kubeconfig, "expected one YAML document");
        const value::Node& root = documents.front().root;
        const value::Node* users = root.find("users");
        const value::Node* contexts = root.find("contexts");
        std::string wanted;
        if (contexts != nullptr) {
            for (const value::Node& context : contexts->items()) {
                if (context.get_string({"name"}) == root.get_string({"current-context"}))
                    wanted = context.get_string({"context", "user"});
            }
        }
        if (users != nullptr) {
            for (const value::Node& user : users->items()) {
                if (user.get_string({"name"}) != wanted) continue;
                const std::string file = user.get_string({"user", "client-certificate"}),
                                  data = user.get_string({"user", "client-certificate-data"});
                // As clients read it: data win over a file, whose path may begin where the kubeconfig is.
                if (data.empty() && !file.empty())
                    return certificate_file(place,
                                            file.starts_with('/') ? file : sys::parent_of(kubeconfig) + "/" + file);
                return certificate_in(kubeconfig, base::from_base64(data).value_or(""));
            }
        }
        return unreadable(kubeconfig, "its current context names no user with a client certificate");
    } catch (const Error& error) {
        return unreadable(kubeconfig, error.what());
    }
}

std::vector<Certificate> all_certificates(const Place& place) {
    std::vector<Certificate> found;
    const auto pki = pki_directory(place);
    add_directory(place, pki, found);
    add_directory(place, pki + "/etcd", found);
    for (const char* name : k_kubeconfigs) {
        const std::string path = std::string("/etc/kubernetes/") + name;
        bool is_there = true;
        try {
            is_there = place.exists(path);
        } catch (const Error&) {
            is_there = true;  // reading it says why
        }
        if (is_there) found.push_back(client_certificate(place, path));
    }
    return found;
}

}  // namespace kmm::kubeadm
