// SPDX-License-Identifier: Apache-2.0
// Plays the nodes of a kubeadm cluster made of files, by the name that it is called by:
//   ssh [OPTION...] -- NODE COMMAND   runs the command, with the real kmm-worker in it, against the node's files
//   chroot ROOT PROGRAM ARGUMENT...   runs what a node has: kubeadm, kubelet, systemctl, crictl, or a program on files
//   follow NODES NODE                 what the kubelet and the controllers of the cluster make of the node's files
//
// $KMM_FAKE_NODES/NODE is the root of a node as fake_kubernetes_fleet.py makes it. In its directory fake/:
//   behaviour   a JSON mapping of what goes wrong, read at each call of a program:
//                 die_at N      kubeadm is killed after N renames of manifests, with "all" the job around it, too
//                 reboot_at N   the node is rebooted after N renames of manifests
//                 reboot_in T   the node is rebooted in the command of that text, as "systemctl restart kubelet"
//                 preflight [..] checks of kubeadm that fail; lie: kubeadm reports success and does nothing
//                 late true     kubeadm swaps manifests and is killed before it writes its ConfigMaps
//                 hold true     kubeadm begins once fake/go is there
//                 restore_fails true  etcd restores no snapshot; lingers true: nothing of the control plane ever ends
//                 fail NAME     the program fails; stale: systemctl restart goes on running the old kubelet
//                 removes true  apt-get would remove a package; packages [..]: versions in the package source,
//                                      "kubelet 1.35.4" one of this package alone
//                 drift T       what kubeadm upgrade diff prints; sandbox T: the image of sandboxes
//                 refuses [..]  errors of kubeadm's preflight when it runs alone
//   log         a line for each call that changes something
// $KMM_FAKE_NODES/faults   lines "NODE VERB KIND"; NODE and VERB may be *, VERB may be #N, the N-th call of all; the
// first
//                          one that fits is used up. VERB is the word after "kmm-worker kubernetes". KINDs:
//                          unreachable, cut-before cut-in cut-after (the connection is lost; what the node has begun
//                          goes on), reboot-before reboot-in reboot-after
// $KMM_FAKE_NODES/calls    "begin|end NODE VERB RESULT"
// ../cluster beside the nodes is the directory cluster. $KMM_FAST_SLEEP is preloaded into what runs on a node.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fake_kubeadm_machine.hpp"

namespace {

namespace fs = fake::fs;
using fake::Lock;
using fake::Machine;
using fake::append;
using fake::join;
using fake::read_text;
using fake::write_text;

constexpr int k_ssh_failed = 255;

int chroot(const std::vector<std::string>& arguments) {
    Machine machine(fs::canonical(arguments[0]));
    const std::string name = arguments[1];
    std::vector<std::string> words(arguments.begin() + 2, arguments.end());
    constexpr std::array<std::string_view, 7> k_on_files{"cp", "mv", "rm", "mkdir", "ln", "chmod", "sync"};
    if (std::find(k_on_files.begin(), k_on_files.end(), name) != k_on_files.end()) {
        std::vector<char*> pointers{const_cast<char*>(name.c_str())};
        for (std::size_t i = 0; i < words.size(); ++i) {
            const bool is_target = name == "ln" && i + 1 < words.size();
            if (words[i].starts_with("/") && !is_target)
                words[i] = (machine.root() / fs::path(words[i]).relative_path()).string();
            pointers.push_back(words[i].data());
        }
        pointers.push_back(nullptr);
        ::execvp(name.c_str(), pointers.data());
        return 127;
    }
    const fs::path path = machine.inside(name.starts_with("/") ? name : "/usr/bin/" + name);
    if (!fs::exists(path)) {
        std::cerr << "chroot: failed to run command '" << name << "': No such file or directory\n";
        return 127;
    }
    std::istringstream text(read_text(path));
    std::string line, hash, program, version;
    std::getline(text, line);
    text >> hash >> program >> version;  // "# kubeadm v1.35.4"
    if (hash != "#" || version.empty()) {
        ::setenv("FAKE_ROOT", machine.root().c_str(), 1);
        std::vector<char*> pointers{const_cast<char*>(path.c_str())};
        for (auto& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        ::execv(path.c_str(), pointers.data());
        return 126;
    }
    return machine.run(program, version, words);
}

/// The fault of this call, "" for none: it is used up.
std::string take_fault(const fs::path& nodes, const std::string& node, const std::string& verb) {
    const Lock lock(nodes / "lock");
    append(nodes / "numbers", ".");
    const std::string number = "#" + std::to_string(fs::file_size(nodes / "numbers"));
    std::istringstream lines(read_text(nodes / "faults"));
    std::string kept, taken;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string of, what, kind;
        words >> of >> what >> kind;
        const bool fits = (of == "*" || of == node) && (what == "*" || what == verb || what == number);
        if (taken.empty() && fits) taken = kind;
        else kept += line + "\n";
    }
    if (!taken.empty()) write_text(nodes / "faults", kept);
    return taken;
}

/// The node's side of a call, in a session of its own, which outlives ours. 'L' in `report`: the connection is lost;
/// else the exit code.
[[noreturn]] void serve(const fs::path& nodes, const std::string& node, const std::string& verb,
                        const std::string& fault, const std::string& command, int in, int out, int err, int report) {
    ::setsid();
    const Machine machine(nodes / node);
    const auto answer = [&](const std::string& text) {
        append(nodes / "calls", "end " + node + " " + verb + " " + text + "\n");
        [[maybe_unused]] const ssize_t written = ::write(report, text.data(), text.size());
        ::close(report);
    };
    if (fault == "reboot-before") machine.reboot();
    if (fault.ends_with("-before")) {
        answer("L");
        ::_exit(0);
    }
    const auto before = machine.log_size();
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::lseek(in, 0, SEEK_SET);
        ::dup2(in, 0);
        ::dup2(out, 1);
        ::dup2(err, 2);
        std::signal(SIGPIPE, SIG_DFL);
        ::setenv("KMM_HOST_ROOT", machine.root().c_str(), 1);
        if (const char* library = std::getenv("KMM_FAST_SLEEP")) ::setenv("LD_PRELOAD", library, 1);
        ::execlp("sh", "sh", "-c", command.c_str(), nullptr);
        ::_exit(127);
    }
    ::close(out);
    ::close(err);
    int status = 0;
    pid_t ended = 0;
    if (fault.ends_with("-in")) {
        while ((ended = ::waitpid(pid, &status, WNOHANG)) == 0 && machine.log_size() == before)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (fault == "reboot-in") machine.reboot();
        answer("L");
    }
    if (ended == 0) ::waitpid(pid, &status, 0);
    machine.await_reboot();
    if (fault == "reboot-after") machine.reboot();
    machine.follow();
    if (!fault.ends_with("-in"))
        answer(fault.ends_with("-after") || !WIFEXITED(status) ? "L" : std::to_string(WEXITSTATUS(status)));
    ::_exit(0);
}

std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(got));
    ::close(fd);
    return text;
}

int ssh(const std::vector<std::string>& arguments) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    const char* given = std::getenv("KMM_FAKE_NODES");
    if (given == nullptr || arguments.end() - dashes < 3) {
        std::cerr << "usage: KMM_FAKE_NODES=DIR ssh [option...] -- NODE COMMAND\n";
        return k_ssh_failed;
    }
    const fs::path nodes = fs::canonical(given);
    const std::string node = dashes[1], command = join({dashes + 2, arguments.end()});
    std::string verb = command.substr(std::min(command.size(), command.find("kubernetes")));
    verb = verb.substr(std::min(verb.size(), verb.find_first_of("' ")));
    verb = verb.substr(std::min(verb.size(), verb.find_first_not_of("' ")));
    verb = verb.substr(0, verb.find_first_of("' "));
    const std::string fault = fs::exists(nodes / node) ? take_fault(nodes, node, verb) : "unreachable";
    append(nodes / "calls", "begin " + node + " " + verb + " " + (fault.empty() ? "-" : fault) + "\n");
    if (fault == "unreachable") {
        std::cerr << "ssh: connect to host " << node << " port 22: No route to host\n";
        return k_ssh_failed;
    }
    std::cerr << "debug1: Sending command: kmm-worker\n" << std::flush;
    // What the caller gives the command, which outlives the caller.
    const int given_text = ::memfd_create("input", MFD_CLOEXEC);
    std::array<char, 65536> buffer{};
    for (ssize_t got = 0; (got = ::read(0, buffer.data(), buffer.size())) > 0;)
        if (::write(given_text, buffer.data(), static_cast<std::size_t>(got)) != got) return k_ssh_failed;
    std::array<std::array<int, 2>, 3> pipes{};
    for (auto& each : pipes)
        if (::pipe2(each.data(), O_CLOEXEC) != 0) return k_ssh_failed;
    if (::fork() == 0) {
        for (auto& each : pipes) ::close(each[0]);
        std::signal(SIGPIPE, SIG_IGN);
        // Nobody may wait for the caller's streams because this process still has them.
        const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int fd : {0, 1, 2}) ::dup2(null, fd);
        serve(nodes, node, verb, fault, command, given_text, pipes[0][1], pipes[1][1], pipes[2][1]);
    }
    for (auto& each : pipes) ::close(each[1]);
    if (fault.ends_with("-in")) {
        // Nobody reads what the node goes on to say.
        ::close(pipes[0][0]);
        ::close(pipes[1][0]);
        static_cast<void>(read_all(pipes[2][0]));
        std::cerr << "kmm-worker-started\nConnection to " << node << " closed by remote host.\n";
        return k_ssh_failed;
    }
    std::string err;
    std::thread reader([&] { err = read_all(pipes[1][0]); });
    const std::string out = read_all(pipes[0][0]);
    reader.join();
    const std::string result = read_all(pipes[2][0]);
    std::cerr << err;
    if (result.empty() || result == "L") {
        std::cerr << "Connection to " << node << " closed by remote host.\n";
        return k_ssh_failed;
    }
    std::cout << out;
    return std::atoi(result.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    const std::string name = fs::path(argv[0]).filename();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (name == "ssh") return ssh(arguments);
    if (name == "chroot" && arguments.size() >= 2) return chroot(arguments);
    if (name == "follow" && arguments.size() == 2) {
        Machine(fs::canonical(fs::path(arguments[0]) / arguments[1])).follow();
        return 0;
    }
    std::cerr << "expected the name ssh, chroot or follow, and its arguments\n";
    return 64;
}
