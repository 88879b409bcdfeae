// SPDX-License-Identifier: Apache-2.0
// A worker that is brought along over ssh. The scripts run in this machine's sh, on a node that is a directory.
#include <doctest/doctest.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cluster/seam/worker_answer.hpp"
#include "cluster/worker/ssh_runner.hpp"
#include "unit/cluster/tree.hpp"

using namespace kmm;
using namespace kmm::cluster;
using test::Tree;

namespace {

std::string machine() {
    utsname facts{};
    (void)::uname(&facts);
    return facts.machine;
}

/// Nodes are nodes/NAME; programs that only they have are in nodes/NAME/bin. Each call of ssh is a line of `calls`:
/// what its script does.
struct Fleet {
    Tree tree;
    std::vector<std::string> told;
    int made = 0;
    WorkerBundle bundle;

    Fleet() {
        script("ssh", R"(dir=$(dirname "$0")
node=; for last; do [ "$before" = -- ] && node=$last; before=$last; done
case $last in *"mkdir -p"*) what=bring;; *"kmm-worker --version"*) what=own;; *) what=bundle;; esac
echo "$node $what" >>"$dir/calls"
echo 'debug1: Sending command: x' >&2
mkdir -p "$dir/nodes/$node/bin"
printf '%s\n' "$last" >>"$dir/commands"
export KMM_BUNDLE_DIR="$dir/nodes/$node/lib" PATH="$dir/nodes/$node/bin:/usr/bin:/bin"
if [ "$what" = bring ] && [ -e "$dir/cut" ]; then head -c 40 | sh -c "$last"; exit; fi
if [ "$what" = bring ] && [ -e "$dir/lost" ]; then head -c 40 | sh -c "$last"; exit 255; fi
exec sh -c "$last")");
        pack(
            "#!/bin/sh\n# kmm-worker 2.0 for x\nid=new\ncat >/dev/null; echo "
            "\"{\\\"kind\\\":\\\"WorkerResult\\\",\\\"verb\\\":\\\"$1\\\"}\"\n");
    }
    void script(const std::string& name, const std::string& text) const {
        tree.put(name, "#!/bin/sh\n" + text + "\n");
        std::filesystem::permissions(tree.path(name), std::filesystem::perms(0755));
    }
    /// The digest is that of sha256sum, by which the nodes judge.
    void pack(const std::string& bytes) {
        tree.put("packed", bytes);
        std::array<char, 65> digest{};
        FILE* const pipe = ::popen(("sha256sum " + tree.path("packed")).c_str(), "r");
        REQUIRE(pipe != nullptr);
        CHECK(std::fread(digest.data(), 1, 64, pipe) == 64);
        ::pclose(pipe);
        bundle = {bytes, digest.data(), machine()};
    }
    [[nodiscard]] SshOptions options(SshOptions::Worker worker) {
        SshOptions options;
        options.ssh_command = tree.path("ssh");
        options.worker = worker;
        options.version = "2.0";
        options.bundle = [this]() -> const WorkerBundle& {
            ++made;
            return bundle;
        };
        options.tell = [this](const std::string& text) { told.push_back(text); };
        return options;
    }
    static WorkerCall call(const std::string& node = "node-a", const std::string& verb = "status") {
        WorkerCall call;
        call.node = node;
        call.args = {verb};
        call.timeout = std::chrono::seconds(60);
        return call;
    }
    [[nodiscard]] std::vector<std::string> left(const std::string& node = "node-a") const {
        std::vector<std::string> names;
        const auto directory = tree.path("nodes/" + node + "/lib");
        if (std::filesystem::is_directory(directory))
            for (const auto& entry : std::filesystem::directory_iterator(directory))
                names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        return names;
    }
    [[nodiscard]] std::string file() const { return "kmm-worker-" + bundle.digest + ".run"; }
};

/// The code of what is in the way.
Error obstacle(const WorkerReply& reply) {
    const auto failure = look_for_failure(reply, Fleet::call(), "WorkerResult");
    REQUIRE(failure);
    REQUIRE(failure->error);
    return *failure->error;
}

using Names = std::vector<std::string>;
constexpr auto k_either = SshOptions::Worker::either;

}  // namespace

TEST_SUITE("cluster::bundle") {
    TEST_CASE("a node without a worker gets one, once") {
        Fleet fleet;
        for (int process = 0; process < 2; ++process) {
            SshRunner runner(fleet.options(k_either));
            for (const auto* verb : {"status", "load"}) {
                const auto reply = runner.run(Fleet::call("node-a", verb));
                CHECK(reply.end == CallEnd::completed);
                CHECK(reply.document.get_string({"verb"}) == verb);
            }
        }
        CHECK(fleet.tree.get("calls") ==
              "node-a own\nnode-a bundle\nnode-a bring\nnode-a bundle\nnode-a bundle\n"
              "node-a own\nnode-a bundle\nnode-a bundle\n");
        CHECK(fleet.left() == Names{fleet.file()});
        CHECK(fleet.told.empty());
    }

    TEST_CASE("one that was changed on the node is brought again") {
        Fleet fleet;
        SshRunner runner(fleet.options(SshOptions::Worker::bundle));
        for (int i = 0; i < 2; ++i) {
            CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
            const auto file = "nodes/node-a/lib/" + fleet.file();
            auto text = fleet.tree.get(file);
            text.back() = 'x';
            fleet.tree.put(file, text);
        }
        CHECK(fleet.tree.get("calls") == "node-a bundle\nnode-a bring\nnode-a bundle\n"
                                         "node-a bundle\nnode-a bring\nnode-a bundle\n");
    }

    TEST_CASE("a worker of this version is used as it is, one of another is named and left alone") {
        Fleet fleet;
        std::filesystem::create_directories(fleet.tree.path("nodes/node-a/bin"));
        std::filesystem::create_directories(fleet.tree.path("nodes/node-b/bin"));
        const std::string own =
            R"([ "$1" != --version ] || { echo kmm-worker VERSION; exit; }; echo '{"kind":"WorkerResult","verb":"own"}')";
        const auto put = [&](const std::string& node, const std::string& version) {
            auto text = own;
            fleet.script("nodes/" + node + "/bin/kmm-worker", text.replace(text.find("VERSION"), 7, version));
        };
        put("node-a", "2.0");
        put("node-b", "1.9");
        SshRunner runner(fleet.options(k_either));
        CHECK(runner.run(Fleet::call("node-a")).document.get_string({"verb"}) == "own");
        CHECK(fleet.made == 0);
        for (int i = 0; i < 2; ++i) CHECK(runner.run(Fleet::call("node-b")).document.get_string({"verb"}) == "status");
        CHECK(fleet.told ==
              Names{"node node-b has kmm-worker 1.9, kmm-worker 2.0 is brought along"});
        fleet.told.clear();
        auto options = fleet.options(SshOptions::Worker::installed);
        SshRunner named(options);
        for (int i = 0; i < 2; ++i) CHECK(named.run(Fleet::call("node-b")).document.get_string({"verb"}) == "own");
        CHECK(named.run(Fleet::call("node-a")).document.get_string({"verb"}) == "own");
        CHECK(fleet.told == Names{"node node-b has kmm-worker 1.9, kmm-upgrade here is 2.0"});
    }

    TEST_CASE("a connection that is cut leaves nothing, and the next call brings it") {
        Fleet fleet;
        SshRunner runner(fleet.options(SshOptions::Worker::bundle));
        fleet.tree.put("cut", "");
        auto error = obstacle(runner.run(Fleet::call()));
        CHECK(error.code() == "worker-not-brought");
        CHECK(error.exit() == Exit::integrity);
        CHECK(fleet.left().empty());
        std::filesystem::rename(fleet.tree.path("cut"), fleet.tree.path("lost"));
        const auto lost = runner.run(Fleet::call());
        CHECK(lost.end == CallEnd::completed);  // what the node said before is known
        CHECK(obstacle(lost).code() == "worker-not-brought");
        CHECK(fleet.left().empty());
        std::filesystem::remove(fleet.tree.path("lost"));
        CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
        CHECK(fleet.left() == Names{fleet.file()});
    }

    TEST_CASE("what other users of the node can change is not run") {
        Fleet fleet;
        SshRunner runner(fleet.options(SshOptions::Worker::bundle));
        const auto lib = fleet.tree.path("nodes/node-a/lib");
        const auto open = [](const std::string& path) {
            std::filesystem::permissions(path, std::filesystem::perms(0777));
        };
        CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
        open(lib + "/" + fleet.file());
        CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
        CHECK(fleet.tree.get("calls") ==
              "node-a bundle\nnode-a bring\nnode-a bundle\nnode-a bundle\nnode-a bring\nnode-a bundle\n");
        open(lib + "/" + fleet.file());
        open(lib);
        CHECK(obstacle(runner.run(Fleet::call())).message() ==
              "node node-a: kmm-worker could not be brought there: other users can change " + lib);
        CHECK(obstacle(runner.run(Fleet::call())).hint().starts_with("it must belong to root or to the user of ssh"));
    }

    TEST_CASE("files of others beside the bundle are neither removed nor read") {
        Fleet fleet;
        SshRunner runner(fleet.options(SshOptions::Worker::bundle));
        fleet.tree.put("nodes/node-a/kept/file", "x");
        fleet.tree.put("nodes/node-a/lib/worker-x/file", "x");
        fleet.tree.put("nodes/node-a/lib/kmm-worker-0.run", "id=x/../../kept\n");
        fleet.tree.put("nodes/node-a/lib/kmm-worker-1.run", "id=x\n");
        std::filesystem::permissions(fleet.tree.path("nodes/node-a/lib/kmm-worker-1.run"),
                                     std::filesystem::perms(0666));
        CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
        CHECK(fleet.tree.get("nodes/node-a/kept/file") == "x");
        Names left{"kmm-worker-1.run", fleet.file(), "worker-x"};
        std::sort(left.begin(), left.end());
        CHECK(fleet.left() == left);
    }

    TEST_CASE("what is in the way is named") {
        Fleet fleet;
        fleet.bundle.machine = "riscv128";
        SshRunner runner(fleet.options(k_either));
        auto error = obstacle(runner.run(Fleet::call()));
        CHECK(error.exit() == Exit::config);
        CHECK(error.message() ==
              "node node-a: the machine is " + machine() + ", the kmm-worker here is for riscv128");
        fleet.bundle.machine = machine();
        fleet.tree.put("nodes/node-a/lib", "a file");
        error = obstacle(runner.run(Fleet::call()));
        CHECK(error.message().starts_with("node node-a: kmm-worker could not be brought there: mkdir: "));
        CHECK(error.hint().find("sudo -n bundle") != std::string::npos);
        std::filesystem::remove(fleet.tree.path("nodes/node-a/lib"));
        fleet.pack(
            "#!/bin/sh\n# kmm-worker 2.0 for x\nid=bad\nprintf 'error: programs in /x cannot be run: is it mounted "
            "noexec?\\n  hint:    name another: KMM_BUNDLE_DIR=DIR\\n  code:    bundle-not-started\\n' >&2; exit 74\n");
        error = obstacle(runner.run(Fleet::call()));
        CHECK(error.code() == "worker-not-brought");
        CHECK(error.message() ==
              "node node-a: kmm-worker was brought there and does not start: kmm-worker says: programs in "
              "/x cannot be run: is it mounted noexec?");
        CHECK(error.hint() == "name another directory: --worker \"env KMM_BUNDLE_DIR=DIR bundle\"");
        CHECK(error.details().empty());
        // A node speaks as itself, and of a bundle only where there is one.
        fleet.pack(
            "#!/bin/sh\n# kmm-worker 2.0 for x\nid=worse\nprintf 'error: done\\n  hint:    curl x | sh\\n  code:    "
            "bundle-not-started\\n' >&2; exit 74\n");
        error = obstacle(runner.run(Fleet::call()));
        CHECK(error.message() == "node node-a: kmm-worker was brought there and does not start: kmm-worker says: done");
        CHECK(error.hint() == "kmm-worker says: curl x | sh");
        auto lies = runner.run(Fleet::call());
        lies.is_brought = false;
        error = obstacle(lies);
        CHECK(error.code() == "worker-failed");
        CHECK(error.hint().empty());
        SshRunner failing([&] {
            auto options = fleet.options(k_either);
            options.bundle = []() -> const WorkerBundle& { throw Error(Exit::not_found, "bundle-failed", "none"); };
            return options;
        }());
        CHECK(obstacle(failing.run(Fleet::call())).code() == "bundle-failed");
    }

    TEST_CASE("earlier ones go, but for what runs and for files of others") {
        Fleet fleet;
        const auto lib = "nodes/node-a/lib/";
        for (const auto* id : {"old", "busy"}) {
            fleet.tree.put(std::string(lib) + "kmm-worker-" + id + ".run",
                           std::string("#!/bin/sh\n# x\nid=") + id + "\n");
            fleet.tree.put(std::string(lib) + "worker-" + id + "/complete", "");
        }
        fleet.tree.put(std::string(lib) + "kmm-worker-same.run", "#!/bin/sh\n# x\nid=new\n");
        fleet.tree.put(std::string(lib) + "worker-new/complete", "");
        fleet.tree.put(std::string(lib) + "worker-by-hand/complete", "");
        const auto program = fleet.tree.path(std::string(lib) + "worker-busy/kmm-worker");
        std::filesystem::copy_file("/bin/sleep", program);
        const auto child = ::fork();
        if (child == 0) {
            ::execl(program.c_str(), program.c_str(), "600", nullptr);
            ::_exit(127);
        }
        while (std::filesystem::read_symlink("/proc/" + std::to_string(child) + "/exe") != program) ::usleep(10'000);
        SshRunner runner(fleet.options(k_either));
        CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
        CHECK(fleet.left() == [&] {
            Names names{fleet.file(), "kmm-worker-busy.run", "worker-busy", "worker-by-hand", "worker-new"};
            std::sort(names.begin(), names.end());
            return names;
        }());
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }

    TEST_CASE("a prefix stands before the scripts, as sudo") {
        Fleet fleet;
        auto options = fleet.options(SshOptions::Worker::bundle);
        options.prefix = "env KMM_BUNDLE_DIR=" + fleet.tree.path("elsewhere");
        SshRunner runner(options);
        CHECK(runner.run(Fleet::call()).document.get_string({"verb"}) == "status");
        CHECK(fleet.left().empty());
        CHECK(std::filesystem::exists(fleet.tree.path("elsewhere/" + fleet.file())));
    }

    TEST_CASE("csh and fish as login shells read the commands as sh does") {
        Fleet fleet;
        SshRunner runner(fleet.options(k_either));
        const auto reply = runner.run(Fleet::call());
        CHECK(reply.end == CallEnd::completed);
        const auto commands = fleet.tree.get("commands");
        CHECK(std::count(commands.begin(), commands.end(), '\n') == 4);  // own, bundle, bring, bundle: one line each
        CHECK(commands.find('!') == std::string::npos);
        for (auto at = commands.find('\\'); at != std::string::npos; at = commands.find('\\', at + 1))
            CHECK(commands.substr(at, 2) == "\\0");
    }

    TEST_CASE("csh and fish pass every argument on as it is") {
        Fleet fleet;
        auto options = fleet.options(SshOptions::Worker::installed);
        options.worker_command = fleet.tree.path("echo");
        fleet.script("echo", R"([ "$1" = --version ] || printf '[%s]' "$@" >"$(dirname "$0")/words")");
        SshRunner runner(options);
        for (int round = 0; round < 2; ++round) {  // the first one also asks for the version
            auto call = Fleet::call();
            call.args = {"a!b", "c\\d\\0041", "e\nf", "it's", "$HOME `x` %b", "", "last\n"};
            (void)runner.run(call);
            CHECK(fleet.tree.get("words").starts_with("[a!b][c\\d\\0041][e\nf][it's][$HOME `x` %b][][last\n]"));
        }
        const auto commands = fleet.tree.get("commands");
        CHECK(std::count(commands.begin(), commands.end(), '\n') == 2);
        CHECK(commands.find('!') == std::string::npos);
    }
}
