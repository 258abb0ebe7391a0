// Runs the real `loadline` program as a user would.
#ifndef LOADLINE_TESTS_END_TO_END_RUN_COMMAND_H_
#define LOADLINE_TESTS_END_TO_END_RUN_COMMAND_H_

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace loadline {

struct CommandResult {
  int exit_code = -1;  // 128 + signal if a signal ended it
  std::string out;
  std::string err;

  // stdout as one JSON document; discarded() if it is none.
  nlohmann::json json() const {
    return nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  }
};

// `args`: without the program's name. `interrupt_when`: sends one `signal` when
// stderr contains this text, or calls `then` instead. `file_bytes_limit`: limit
// on the size of files, to simulate a full disk.
struct CommandOptions {
  std::string interrupt_when;
  int signal = SIGINT;
  std::function<void()> then = {};
  long file_bytes_limit = -1;
  long data_bytes_limit = -1;   // RLIMIT_DATA
  bool ignore_signals = false;  // start it with SIGINT, ... ignored
};
CommandResult RunLoadline(const std::vector<std::string>& args,
                          const CommandOptions& options = {});

// An empty folder of the running test. Tests run side by side: none sees a
// folder of another, whatever the names.
std::string TestFolder(const std::string& name);

std::string Zoo(const std::string& file);  // models/zoo/FILE

}  // namespace loadline

#endif  // LOADLINE_TESTS_END_TO_END_RUN_COMMAND_H_
