// Environment variables in tests.
#ifndef LOADLINE_TESTS_TOOLS_SUPPORT_ENVIRONMENT_H_
#define LOADLINE_TESTS_TOOLS_SUPPORT_ENVIRONMENT_H_

#include <cstdlib>
#include <optional>
#include <string>

namespace loadline::tools {

// Sets or removes an environment variable for one test.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    Set(value);
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;
  ~ScopedEnvironment() { Set(before_ ? before_->c_str() : nullptr); }

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace loadline::tools

#endif  // LOADLINE_TESTS_TOOLS_SUPPORT_ENVIRONMENT_H_
