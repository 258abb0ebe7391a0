// The C face of planner/: texts in, texts out, the thread's last error beside.
// Every entry runs inside Guarded, which turns a Status into a code and keeps
// what a library below may throw (no memory) from leaving. Tested by
// tests/plugins/c_api_test.c, which is C and knows nothing but the header.
#include "plugins/c/loadline.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "planner/base/status_macros.h"
#include "planner/problem/known_machines.h"
#include "planner/problem/machine.h"
#include "planner/problem/plan.h"
#include "planner/problem/problem.h"
#include "planner/solve/budget.h"
#include "planner/solve/solve.h"
#include "planner/verify/verify.h"

struct loadline_cancel {
  std::atomic<bool> now{false};
};

namespace {

namespace planner = loadline::planner;

struct LastError {
  std::string message;
  std::optional<planner::Infeasibility> infeasibility;
};
thread_local LastError last_error;

loadline_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return LOADLINE_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return LOADLINE_INVALID_ARGUMENT;
    case absl::StatusCode::kResourceExhausted:
      return LOADLINE_INFEASIBLE;
    case absl::StatusCode::kDeadlineExceeded:
      return LOADLINE_STOPPED;
    case absl::StatusCode::kFailedPrecondition:
      return LOADLINE_NOT_VALID;
    default:
      return LOADLINE_INTERNAL;
  }
}

template <typename Body>
loadline_status Guarded(const Body& body) noexcept {
  try {
    last_error = LastError();
    const absl::Status status = body();
    if (!status.ok()) {
      last_error.message = std::string(status.message());
      last_error.infeasibility = planner::InfeasibilityOf(status);
    }
    return CodeOf(status);
  } catch (const std::exception& error) {
    // Short enough to need no memory of its own.
    last_error.message = "out of memory";
  }
  return LOADLINE_INTERNAL;
}

absl::Status NoNull(const void* pointer, absl::string_view name) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is null"));
}

// A struct of the caller's version as one of ours.
template <typename Struct>
absl::Status ReadStruct(const Struct* given, absl::string_view name,
                        Struct& ours) {
  LOADLINE_RETURN_IF_ERROR(NoNull(given, name));
  const size_t size = given->size;
  if (size < sizeof(size_t) || size > 65536) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".size is ", size, ": set it to sizeof the struct"));
  }
  const char* bytes = reinterpret_cast<const char*>(given);
  if (std::any_of(bytes + std::min(size, sizeof(Struct)), bytes + size,
                  [](char byte) { return byte != 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " sets a field that this library (",
                     LOADLINE_VERSION, ") does not know: update it"));
  }
  ours = Struct();
  std::memcpy(&ours, given, std::min(size, sizeof(Struct)));
  return absl::OkStatus();
}

absl::Status GiveText(const std::string& text, char** out) {
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  if (*out == nullptr) return absl::InternalError("out of memory");
  std::memcpy(*out, text.c_str(), text.size() + 1);
  return absl::OkStatus();
}

absl::StatusOr<planner::Problem> ReadProblem(const char* problem,
                                             size_t problem_bytes) {
  LOADLINE_RETURN_IF_ERROR(NoNull(problem, "problem"));
  return planner::ProblemFromJson(absl::string_view(problem, problem_bytes));
}

// The C struct as the planner's own types.
struct Request {
  planner::Budget budget;
  planner::SolveOptions options;
};

absl::StatusOr<planner::Budget> ReadBudget(
    const loadline_solve_options& given) {
  if (given.budget_share_ppb == 0) {
    if (given.budget_bytes == 0) return planner::Budget::Smallest();
    planner::Budget budget = planner::Budget::Bytes(given.budget_bytes);
    budget.counts_reserved = given.budget_counts_reserved != 0;
    return budget;
  }
  if (given.budget_bytes != 0) {
    return absl::InvalidArgumentError(
        "options.budget_bytes and budget_share_ppb are both set");
  }
  return planner::Budget::Share(given.budget_share_ppb);
}

absl::StatusOr<Request> ReadRequest(const loadline_solve_options* options) {
  loadline_solve_options given;
  LOADLINE_RETURN_IF_ERROR(ReadStruct(options, "options", given));
  if (given.time_limit_ns < 0) {
    return absl::InvalidArgumentError("options.time_limit_ns is negative");
  }
  if (given.effort < LOADLINE_EFFORT_NORMAL ||
      given.effort > LOADLINE_EFFORT_MODERATE) {
    return absl::InvalidArgumentError("options.effort is not an effort");
  }
  if (given.threads < 0) {
    return absl::InvalidArgumentError("options.threads is negative");
  }
  if (given.forbid_codecs != 0 && given.allow_lossy != 0) {
    return absl::InvalidArgumentError(
        "options.forbid_codecs and allow_lossy are both set");
  }
  Request request;
  LOADLINE_ASSIGN_OR_RETURN(request.budget, ReadBudget(given));
  planner::SolveOptions& solve = request.options;
  solve.allow_recompute = given.forbid_recompute == 0;
  solve.allow_offload = given.forbid_offload == 0;
  solve.permissions.codecs = given.forbid_codecs == 0;
  solve.permissions.lossy = given.allow_lossy != 0;
  solve.permissions.inexact = given.allow_inexact != 0;
  solve.effort = static_cast<planner::Effort>(given.effort);
  solve.allow_retries = given.forbid_harder == 0;
  if (given.work_limit != 0) solve.work_limit = given.work_limit;
  if (given.time_limit_ns > 0) {
    solve.time_limit = absl::Nanoseconds(given.time_limit_ns);
  }
  solve.seed = given.seed;
  solve.threads = given.threads;
  if (given.cancel != nullptr) solve.cancel = &given.cancel->now;
  if (given.progress != nullptr) {
    solve.progress = [given](const planner::Progress& found) {
      const loadline_progress progress = {sizeof(progress), found.elapsed_s,
                                          found.peak_bytes, found.step_ns,
                                          found.bound_step_ns};
      given.progress(&progress, given.user);
    };
  }
  return request;
}

}  // namespace

const char* loadline_version(void) { return LOADLINE_VERSION; }

const char* loadline_last_error(void) { return last_error.message.c_str(); }

loadline_status loadline_last_infeasibility(loadline_infeasibility* facts) {
  if (facts == nullptr || facts->size < sizeof(size_t) ||
      !last_error.infeasibility) {
    return LOADLINE_INVALID_ARGUMENT;
  }
  const planner::Infeasibility& found = *last_error.infeasibility;
  const size_t size = std::min(facts->size, sizeof(loadline_infeasibility));
  const loadline_infeasibility ours = {facts->size, found.budget_bytes,
                                       found.smallest_met_bytes,
                                       found.proven_bound_bytes};
  std::memcpy(facts, &ours, size);
  return LOADLINE_OK;
}

loadline_cancel* loadline_cancel_new(void) {
  return new (std::nothrow) loadline_cancel;
}

void loadline_cancel_now(loadline_cancel* cancel) {
  if (cancel != nullptr) cancel->now = true;
}

void loadline_cancel_free(loadline_cancel* cancel) { delete cancel; }

loadline_status loadline_solve(const char* problem, size_t problem_bytes,
                               const loadline_solve_options* options,
                               char** plan) {
  if (plan != nullptr) *plan = nullptr;
  return Guarded([&]() -> absl::Status {
    LOADLINE_RETURN_IF_ERROR(NoNull(plan, "plan"));
    LOADLINE_ASSIGN_OR_RETURN(const Request request, ReadRequest(options));
    LOADLINE_ASSIGN_OR_RETURN(const planner::Problem posed,
                              ReadProblem(problem, problem_bytes));
    LOADLINE_ASSIGN_OR_RETURN(
        const planner::Plan found,
        planner::SolveWithin(posed, request.budget, request.options));
    return GiveText(planner::PlanToJson(found, posed), plan);
  });
}

loadline_status loadline_keep_everything(const char* problem,
                                         size_t problem_bytes, char** plan) {
  if (plan != nullptr) *plan = nullptr;
  return Guarded([&]() -> absl::Status {
    LOADLINE_RETURN_IF_ERROR(NoNull(plan, "plan"));
    LOADLINE_ASSIGN_OR_RETURN(const planner::Problem posed,
                              ReadProblem(problem, problem_bytes));
    LOADLINE_ASSIGN_OR_RETURN(const planner::Plan kept,
                              planner::KeepEverything(posed));
    return GiveText(planner::PlanToJson(kept, posed), plan);
  });
}

loadline_status loadline_verify(const char* problem, size_t problem_bytes,
                                const char* plan, size_t plan_bytes) {
  return Guarded([&]() -> absl::Status {
    LOADLINE_RETURN_IF_ERROR(NoNull(plan, "plan"));
    LOADLINE_ASSIGN_OR_RETURN(const planner::Problem posed,
                              ReadProblem(problem, problem_bytes));
    LOADLINE_ASSIGN_OR_RETURN(
        const planner::Plan read,
        planner::PlanFromJson(absl::string_view(plan, plan_bytes), posed));
    return planner::Verify(posed, read);
  });
}

loadline_status loadline_canonical_problem(const char* problem,
                                           size_t problem_bytes,
                                           char** canonical) {
  if (canonical != nullptr) *canonical = nullptr;
  return Guarded([&]() -> absl::Status {
    LOADLINE_RETURN_IF_ERROR(NoNull(canonical, "canonical"));
    LOADLINE_ASSIGN_OR_RETURN(const planner::Problem posed,
                              ReadProblem(problem, problem_bytes));
    return GiveText(planner::ProblemToJson(posed), canonical);
  });
}

loadline_status loadline_known_machine(const char* name, char** machine) {
  if (machine != nullptr) *machine = nullptr;
  return Guarded([&]() -> absl::Status {
    LOADLINE_RETURN_IF_ERROR(NoNull(name, "name"));
    LOADLINE_RETURN_IF_ERROR(NoNull(machine, "machine"));
    LOADLINE_ASSIGN_OR_RETURN(const planner::Machine known,
                              planner::KnownMachine(name));
    return GiveText(planner::MachineToJson(known), machine);
  });
}

void loadline_free(char* text) { std::free(text); }
