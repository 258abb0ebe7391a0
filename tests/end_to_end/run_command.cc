// Uses fork, exec and poll, so that tests observe what a shell does: exit code,
// both streams, signals.
#include "tests/end_to_end/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/planner/support/test_folder.h"

namespace loadline {
namespace {

[[noreturn]] void BecomeLoadline(const std::vector<std::string>& args,
                                 const CommandOptions& options) {
  if (options.file_bytes_limit >= 0) {
    const rlim_t limit = static_cast<rlim_t>(options.file_bytes_limit);
    const struct rlimit both = {limit, limit};
    setrlimit(RLIMIT_FSIZE, &both);
    signal(SIGXFSZ, SIG_IGN);
  }
  if (options.data_bytes_limit >= 0) {
    const rlim_t limit = static_cast<rlim_t>(options.data_bytes_limit);
    const struct rlimit both = {limit, limit};
    setrlimit(RLIMIT_DATA, &both);
  }
  // The tests may have been started with signals ignored, as under nohup.
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    signal(number, options.ignore_signals ? SIG_IGN : SIG_DFL);
  }
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>(LOADLINE_BINARY));
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  execv(LOADLINE_BINARY, argv.data());
  _exit(127);
}

// Appends the available text; false at the end of the stream.
bool Drain(int fd, std::string* text) {
  std::array<char, 65536> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count <= 0) return false;
  text->append(buffer.data(), static_cast<size_t>(count));
  return true;
}

}  // namespace

CommandResult RunLoadline(const std::vector<std::string>& args,
                          const CommandOptions& options) {
  int out[2];
  int err[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    BecomeLoadline(args, options);
  }
  close(out[1]);
  close(err[1]);
  CommandResult result;
  bool interrupted = options.interrupt_when.empty();
  std::array<pollfd, 2> streams = {{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}}};
  int open_streams = 2;
  while (open_streams > 0) {
    poll(streams.data(), streams.size(), -1);
    for (size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      if (!Drain(streams[i].fd, i == 0 ? &result.out : &result.err)) {
        streams[i].fd = -1;
        --open_streams;
      }
    }
    if (!interrupted &&
        result.err.find(options.interrupt_when) != std::string::npos) {
      if (options.then) {
        options.then();
      } else {
        kill(child, options.signal);
      }
      interrupted = true;
    }
  }
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  result.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string TestFolder(const std::string& name) {
  return EmptyTestFolder(name);
}

std::string Zoo(const std::string& file) {
  return absl::StrCat(LOADLINE_SOURCE_DIR, "/models/zoo/", file);
}

}  // namespace loadline
