// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/local_runner.hpp"

#include <utility>

#include "cluster/seam/worker_process.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"

namespace kmm::cluster {

LocalRunner::LocalRunner(std::string worker_command) : worker_command_(std::move(worker_command)) {}

WorkerReply LocalRunner::run(const WorkerCall& call) {
    sys::ProcessSpec spec;
    spec.argv = worker_argv(worker_command_, call);
    spec.stdin_text = call.stdin_text;
    if (call.timeout.count() > 0) spec.timeout = call.timeout;
    sys::require_trusted_program(spec.argv.front());
    const auto result = sys::run_process(spec);
    ChildLog log;
    log.text = result.err;
    return judge(result, log);
}

}  // namespace kmm::cluster
