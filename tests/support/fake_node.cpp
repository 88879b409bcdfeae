// SPDX-License-Identifier: Apache-2.0
// Plays ssh and the node behind it, for tests of the real kmm-upgrade without any node. Installed as "ssh" in a
// directory that comes first in PATH.
//
// $KMM_FAKE_NODES/NODE/    kernel, boot-id        one line each
//                          live                   a line "MODULE IDENTITY" for each loaded module, absent when nothing
//                          is loaded needs                  lines "MODULE NEEDED": not loaded without it, which is in
//                          use meanwhile installed              the kernel that the next reboot boots; absent: the same
//                          one done                   a line "install RELEASE" or "reboot BOOT" for each that was
//                          carried out down                   how many calls do not get there any more, "ever" for all
//                          faults                 lines "VERB KIND [ARGUMENT]"; the first one of a verb is used up by a
//                          call
// $KMM_FAKE_NODES/calls    one line for the begin and the end of every call: "begin|end NODE VERB RESULT [IDENTITY]",
// then "of MODULE"
//
// The module in an image has an identity that is made from the image's reference. As on a real node, what was begun
// goes on when the connection, or the caller, dies. KINDs: refused busy image-not-found check-failed unreachable
// cut-before cut-after reboot-before reboot-after slow (ARGUMENT: milliseconds) old-kernel never-back install-failed
// not-going (of "node-install" and "node-reboot", the verbs node install and node reboot; a node is away for one call
// after its reboot) held (until the file let-go is there, for two minutes at most).
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "value/reader.hpp"
#include "value/writer.hpp"

using kmm::value::Node;

namespace {

constexpr int k_ssh_failed = 255;

struct Answer {
    int exit_code = 0;
    std::string text;
    bool connection_lost = false;
};

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string read_line(const std::string& path) {
    std::string text = read_text(path);
    text.resize(std::min(text.find('\n'), text.size()));
    return text;
}

void replace_text(const std::string& path, const std::string& text) {
    std::ofstream(path + ".new", std::ios::binary) << text;
    std::rename((path + ".new").c_str(), path.c_str());
}

/// The words of a command line made of plain and single-quoted words.
std::vector<std::string> shell_words(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\'') {
            const std::size_t end = text.find('\'', i + 1);
            word += text.substr(i + 1, end - i - 1);
            i = end;
            in_word = true;
        } else if (text[i] == '\\' && i + 1 < text.size()) {
            word += text[++i];
            in_word = true;
        } else if (text[i] == ' ') {
            if (in_word) words.push_back(word);
            word.clear();
            in_word = false;
        } else {
            word += text[i];
            in_word = true;
        }
    }
    if (in_word) words.push_back(word);
    return words;
}

/// 24 upper-case hexadecimal digits, as a srcversion has.
std::string identity_of(const std::string& image) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    std::string digits;
    for (int round = 0; digits.size() < 24; ++round) {
        for (const char byte : image + std::to_string(round))
            hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
        std::ostringstream text;
        text << std::uppercase << std::hex << hash;
        digits += text.str();
    }
    return digits.substr(0, 24);
}

class FakeNode {
public:
    FakeNode(std::string root, std::string name)
        : root_(std::move(root)),
          name_(std::move(name)),
          dir_(root_ + "/" + name_),
          lock_(::open(dir_.c_str(), O_RDONLY)) {
        ::flock(lock_, LOCK_EX);  // one call at a time
    }
    FakeNode(const FakeNode&) = delete;
    FakeNode& operator=(const FakeNode&) = delete;
    ~FakeNode() { ::close(lock_); }

    [[nodiscard]] bool exists() const { return lock_ >= 0; }

    Answer call(const std::vector<std::string>& argv, const std::string& input) {
        if (argv.size() > 1 && argv[0] == "node") return call_system(argv);
        const std::string verb = argv.empty() ? "" : argv[0];
        kmm::Diagnostics faults;
        if (verb == "status") {
            module_ = argv.size() > 1 ? argv[1] : "kmm_hello";
        } else {
            const auto documents = kmm::value::read_any(input, "-", faults);
            if (!kmm::has_errors(faults) && !documents.empty()) config_ = documents[0].root;
            module_ = config_.get_string({"modprobe", "moduleName"});
        }
        std::replace(module_.begin(), module_.end(), '-', '_');
        const auto [kind, argument] = take_fault(verb);
        log("begin", verb, kind.empty() ? "-" : kind);
        if (kind == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argument.c_str())));
        for (int rest = 6000; kind == "held" && rest > 0 && ::access((dir_ + "/let-go").c_str(), F_OK) != 0; --rest) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        Answer answer;
        if (kind == "reboot-before") reboot();
        if (kind == "cut-before" || kind == "reboot-before") {
            answer.connection_lost = true;
        } else if (kind == "refused") {
            answer = error(13, "module-refused", "the kernel refused the module",
                           {{"errno", Node("ENODEV")}, {"kernel", Node("kmm_hello: no device found")}});
        } else if (kind == "busy") {
            answer = error(14, "module-in-use", "the module is in use",
                           {{"refcount", Node(1)}, {"holders", Node("kmm_user")}});
        } else if (kind == "image-not-found") {
            answer = error(66, "image-not-found", "the image is not in the registry", {});
        } else if (kind == "check-failed") {
            answer = error(10, "check-failed", "the module cannot be loaded", {{"vermagic", Node("6.1.0-99-amd64")}});
        } else {
            answer = act(verb);
            if (kind == "reboot-after") reboot();
            answer.connection_lost = kind == "cut-after" || kind == "reboot-after";
        }
        log("end", verb, answer.connection_lost ? "lost" : std::to_string(answer.exit_code) + " " + live());
        return answer;
    }

    /// Takes the fault "VERB unreachable" for a call that never gets there.
    bool take_unreachable(const std::string& verb) {
        if (const std::string down = read_line(dir_ + "/down"); down == "ever") return true;
        else if (!down.empty()) {
            const int left = std::atoi(down.c_str()) - 1;
            if (left > 0) replace_text(dir_ + "/down", std::to_string(left) + "\n");
            else ::unlink((dir_ + "/down").c_str());
            return true;
        }
        const std::string faults = read_text(dir_ + "/faults");
        if (faults.find(verb + " unreachable\n") == std::string::npos) return false;
        take_fault(verb);
        return true;
    }

private:
    std::pair<std::string, std::string> take_fault(const std::string& verb) {
        std::istringstream lines(read_text(dir_ + "/faults"));
        std::string kept;
        std::pair<std::string, std::string> taken;
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string of, kind, argument;
            words >> of >> kind >> argument;
            if (taken.first.empty() && of == verb) taken = {kind, argument};
            else kept += line + "\n";
        }
        if (!taken.first.empty()) replace_text(dir_ + "/faults", kept);
        return taken;
    }

    void log(const std::string& what, const std::string& verb, const std::string& result) const {
        const std::string line = what + " " + name_ + " " + verb + " " + result + " of " + module_ + "\n";
        const int fd = ::open((root_ + "/calls").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
        ::close(fd);
    }

    /// node facts, node install and node reboot.
    Answer call_system(const std::vector<std::string>& argv) {
        const std::string verb = "node-" + argv[1];
        const auto option = [&](const char* name) {
            const auto found = std::find(argv.begin(), argv.end(), name);
            return found == argv.end() || found + 1 == argv.end() ? std::string() : *(found + 1);
        };
        const auto [kind, argument] = take_fault(verb);
        log("begin", verb, kind.empty() ? "-" : kind);
        Answer answer;
        if (kind == "reboot-before") reboot();
        if (kind == "cut-before" || kind == "reboot-before") {
            answer.connection_lost = true;
        } else {
            answer = act_system(argv[1], option("--to"), option("--boot-id"), kind);
            answer.connection_lost = answer.connection_lost || kind == "cut-after";
        }
        log("end", verb, answer.connection_lost ? "lost" : std::to_string(answer.exit_code));
        return answer;
    }

    Answer act_system(const std::string& step, const std::string& release, const std::string& boot,
                      const std::string& kind) {
        Node document = node_info();
        document.set("apiVersion", Node("kmmtools/v1"));
        document.set("kind", Node(step == "facts" ? "NodeSystem" : "NodeSystemStep"));
        const auto said = [&](const char* outcome, const std::string& message) {
            document.set("outcome", Node(outcome));
            document.set("message", Node(message));
            return good(document);
        };
        // A job of an earlier call is under way for as many calls as the file "job" says.
        const int calls_left = std::atoi(read_line(dir_ + "/job").c_str());
        if (calls_left > 0) replace_text(dir_ + "/job", std::to_string(calls_left - 1) + "\n");
        if (step == "facts") {
            auto job = Node::mapping({{"state", Node(calls_left > 0 ? "running" : "none")}});
            if (calls_left > 0) job.set("key", Node("install it"));
            document.set("job", std::move(job));
            return good(document);
        }
        if (calls_left > 0 && step == "install")
            return error(75, "job-running", "a job is running on this node: install it", {{"pid", Node("4711")}});
        if (step == "install") {
            if (kind == "install-failed")
                return error(1, "install-failed", "the command that installs it ended with exit 100",
                             {{"output", Node("E: Unable to locate package")}});
            replace_text(dir_ + "/installed", release + "\n");
            std::ofstream(dir_ + "/done", std::ios::app) << "install " << release << "\n";
            return said("done", "installed " + release);
        }
        if (step != "reboot") return error(64, "usage", "unknown verb", {});
        if (read_line(dir_ + "/boot-id") != boot) return said("already", "the node runs another boot");
        if (kind == "not-going") return said("requested", "the node was asked to reboot");
        std::ofstream(dir_ + "/done", std::ios::app) << "reboot " << boot << "\n";
        if (const std::string next = read_line(dir_ + "/installed"); !next.empty() && kind != "old-kernel")
            replace_text(dir_ + "/kernel", next + "\n");
        reboot();
        replace_text(dir_ + "/down", kind == "never-back" ? "ever\n" : "1\n");
        return said("requested", "the node was asked to reboot");
    }

    void reboot() {
        ::unlink((dir_ + "/live").c_str());
        replace_text(dir_ + "/boot-id", read_line(dir_ + "/boot-id") + "-r\n");
    }

    /// What is loaded under which identity.
    [[nodiscard]] std::map<std::string, std::string> loaded() const {
        std::map<std::string, std::string> found;
        std::istringstream words(read_text(dir_ + "/live"));
        for (std::string name, identity; words >> name >> identity;) found[name] = identity;
        return found;
    }

    void write_loaded(const std::map<std::string, std::string>& modules) const {
        std::string text;
        for (const auto& [name, identity] : modules) text += name + " " + identity + "\n";
        if (text.empty()) ::unlink((dir_ + "/live").c_str());
        else replace_text(dir_ + "/live", text);
    }

    /// Identity of what is loaded of the module that the call is about, "" for nothing.
    [[nodiscard]] std::string live() const {
        const auto modules = loaded();
        const auto found = modules.find(module_);
        return found == modules.end() ? "" : found->second;
    }

    /// What the module needs and is not loaded (`side` 0), or what is loaded and needs it (1); "" for nothing.
    [[nodiscard]] std::string unmet(std::size_t side) const {
        const auto modules = loaded();
        std::istringstream words(read_text(dir_ + "/needs"));
        for (std::array<std::string, 2> pair; words >> pair[0] >> pair[1];)
            if (pair[side] == module_ && modules.contains(pair[1 - side]) == (side == 1)) return pair[1 - side];
        return "";
    }

    [[nodiscard]] Node node_info() const {
        return Node::mapping({{"name", Node(name_)},
                              {"kernel", Node(read_line(dir_ + "/kernel"))},
                              {"bootID", Node(read_line(dir_ + "/boot-id"))},
                              {"architecture", Node("amd64")}});
    }

    static Answer error(int exit_code, const char* code, const char* message,
                        std::initializer_list<std::pair<std::string, Node>> details) {
        Node document = Node::mapping({{"apiVersion", Node("kmmtools/v1")},
                                       {"kind", Node("Error")},
                                       {"code", Node(code)},
                                       {"message", Node(message)},
                                       {"exitCode", Node(exit_code)},
                                       {"details", Node::mapping(details)}});
        return {exit_code, kmm::value::to_json(document), false};
    }

    static Answer good(Node document) { return {0, kmm::value::to_json(document), false}; }

    [[nodiscard]] Answer status() const {
        Node item = Node::mapping({{"name", Node(module_)}, {"state", Node(live().empty() ? "absent" : "live")}});
        if (!live().empty()) item.set("srcversion", Node(live()));
        return good(Node::mapping({{"apiVersion", Node("kmmtools/v1")},
                                   {"kind", Node("ModuleStatus")},
                                   {"node", node_info()},
                                   {"modules", Node::sequence({item})}}));
    }

    [[nodiscard]] Answer act(const std::string& verb) const {
        if (verb == "status") return status();
        if (module_.empty()) return error(65, "bad-config", "the ModuleConfig cannot be read", {});
        const std::string image = config_.get_string({"containerImage"});
        if (config_.get_string({"kernelVersion"}) != read_line(dir_ + "/kernel"))
            return error(10, "check-failed", "the module is for another kernel", {});
        const std::string identity = identity_of(image);
        auto modules = loaded();
        std::string outcome = "passed";
        if (verb == "load") {
            if (!live().empty() && live() != identity)
                return error(13, "module-differs", "another build of the module is live", {{"loaded", Node(live())}});
            if (const auto needed = unmet(0); !needed.empty())
                return error(13, "module-refused", "the kernel refused the module",
                             {{"errno", Node("ENOENT")}, {"kernel", Node("needs " + needed)}});
            outcome = live() == identity ? "already-loaded" : "loaded";
            modules[module_] = identity;
            write_loaded(modules);
        } else if (verb == "unload") {
            if (const auto user = unmet(1); !user.empty() && !live().empty())
                return error(14, "module-in-use", "the module is in use",
                             {{"refcount", Node(1)}, {"holders", Node(user)}});
            outcome = live().empty() ? "not-loaded" : "unloaded";
            modules.erase(module_);
            write_loaded(modules);
        } else if (verb != "check" && verb != "pull") {
            return error(64, "usage", "unknown verb", {});
        }
        return good(Node::mapping(
            {{"apiVersion", Node("kmmtools/v1")},
             {"kind", Node("WorkerResult")},
             {"verb", Node(verb)},
             {"outcome", Node(outcome)},
             {"node", node_info()},
             {"image", Node::mapping({{"reference", Node(image)}, {"digest", Node("sha256:" + identity)}})},
             {"modules", Node::sequence({Node::mapping({{"name", Node(module_)},
                                                        {"action", Node(verb == "check" ? "load" : outcome)},
                                                        {"srcversion", Node(identity)},
                                                        {"main", Node(true)}})})}}));
    }

    std::string root_;
    std::string name_;
    std::string dir_;
    int lock_;
    std::string module_;  ///< which the call is about
    Node config_;
};

/// The node's side of the call, which outlives ours.
Answer run_detached(const std::string& root, const std::string& name, const std::vector<std::string>& argv,
                    const std::string& input) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return {k_ssh_failed, "", true};
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::setsid();
        std::signal(SIGPIPE, SIG_IGN);
        ::close(ends[0]);
        // Nobody may wait for the caller's streams because this process still has them.
        const int null = ::open("/dev/null", O_RDWR);
        for (const int fd : {0, 1, 2}) ::dup2(null, fd);
        const Answer answer = FakeNode(root, name).call(argv, input);
        const std::string text = (answer.connection_lost ? "L" : "A") + answer.text;
        [[maybe_unused]] const ssize_t written = ::write(ends[1], text.data(), text.size());
        ::_exit(answer.exit_code);
    }
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(got));
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (text.empty() || text[0] != 'A') return {k_ssh_failed, "", true};
    return {WEXITSTATUS(status), text.substr(1), false};
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    const char* root = std::getenv("KMM_FAKE_NODES");
    if (root == nullptr || arguments.end() - dashes != 3) {
        std::cerr << "usage: KMM_FAKE_NODES=DIR ssh [option...] -- NODE COMMAND\n";
        return k_ssh_failed;
    }
    const std::string name = dashes[1];
    std::vector<std::string> words = shell_words(dashes[2]);
    const auto worker =
        std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.ends_with("kmm-worker"); });
    // Behind the name: what the shell is to run, where that came encoded, and the worker's words.
    const bool is_encoded = std::any_of(words.begin(), worker, [](const std::string& word) {
        return word.find("printf %b") != std::string::npos;
    });
    const auto first = worker == words.end() ? 0 : is_encoded ? 2 : 1;
    const std::vector<std::string> call(worker + std::min<std::ptrdiff_t>(first, words.end() - worker), words.end());
    {
        FakeNode node(root, name);
        if (!node.exists() || call.empty() || node.take_unreachable(call[0])) {
            std::cerr << "ssh: connect to host " << name << " port 22: No route to host\n";
            return k_ssh_failed;
        }
    }
    std::cerr << "debug1: Sending command: kmm-worker\nkmm-worker-started\n";
    const std::string input{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    const Answer answer = run_detached(root, name, call, input);
    if (answer.connection_lost) {
        std::cerr << "Connection to " << name << " closed by remote host.\n";
        return k_ssh_failed;
    }
    std::cout << answer.text << "\n";
    return answer.exit_code;
}
