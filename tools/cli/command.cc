// Parses the arguments, runs one verb, and turns its status into an exit code.
// Tested by tests/end_to_end/bad_input_test.cc.
#include "tools/cli/command.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <sstream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/help.h"
#include "tools/cli/nearest_word.h"
#include "tools/cli/reproduce.h"
#include "tools/cli/standard_output.h"
#include "tools/cli/yaml_args.h"

namespace loadline::tools {
namespace {

struct VerbEntry {
  const char* name;
  const char* help;
  const char* example;
  AddVerb add;
};

constexpr VerbEntry kVerbs[] = {
    {"run", "Train a model inside a byte budget",
     "loadline run model.onnx --data d.npz --budget 50% -o trained.onnx",
     AddRun},
    {"plan", "Plan a training step and say what it costs",
     "loadline plan model.onnx --batch 32 --budget 3GiB -o plan.json", AddPlan},
    {"estimate", "Say whether it fits, without a search",
     "loadline estimate model.onnx --batch 32 --budget 3GiB", AddEstimate},
    {"sweep", "Step time against budget, or the largest batch that fits",
     "loadline sweep model.onnx --data d.npz --budgets 8 --html sweep.html",
     AddSweep},
    {"report", "Show a plan as a page: memory, arena, lanes, tensors",
     "loadline report model.onnx --budget 50% --html report.html", AddReport},
    {"compare", "Two plans side by side, or a plan and its run",
     "loadline compare a.json b.json --problem problem.json", AddCompare},
    {"inspect", "Show a model's operators, parameters and bytes",
     "loadline inspect model.onnx --batch 32", AddInspect},
    {"groups", "List the channels that can be pruned, and what goes with them",
     "loadline groups model.onnx", AddGroups},
    {"sensitivity", "What a model loses with each group's channels",
     "loadline sensitivity model.onnx --data test.npz -o recipe.yaml",
     AddSensitivity},
    {"check", "Say whether a model is supported, and trains as exported",
     "loadline check model.onnx --batch 32", AddCheck},
    {"eval", "Loss and accuracy of a model on data",
     "loadline eval trained.onnx --data test.npz", AddEval},
    {"pose", "Write the planning problem of a training step",
     "loadline pose model.onnx --batch 32 -o problem.json", AddPose},
    {"verify", "Prove that a plan is valid for a problem",
     "loadline verify problem.json plan.json", AddVerify},
    {"pack", "Lay out buffers of a CSV file in one arena",
     "loadline pack buffers.csv --capacity 1MiB -o out.csv", AddPack},
    {"doctor", "Measure this machine into a profile",
     "loadline doctor -o machine.json", AddDoctor},
    {"completion", "Print a completion script for a shell",
     "loadline completion bash > ~/.local/share/bash-completion/completions/"
     "loadline",
     AddCompletion},
    {"man", "Print the manual page", "loadline man | man -l -", AddMan},
};

// stderr, without control characters of names.
class PrintableSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string text = Printable({line.data(), line.size()});
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  void flush_() override { std::fflush(stderr); }
};

void SetUpLog(bool quiet, bool verbose) {
  auto logger = spdlog::get("loadline");
  if (logger == nullptr) {
    logger = spdlog::create<PrintableSink>("loadline");
  }
  logger->set_pattern("%n: %v");
  logger->set_level(verbose ? spdlog::level::debug
                    : quiet ? spdlog::level::warn
                            : spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

int Fail(const absl::Status& status) {
  std::fflush(stdout);
  std::fprintf(stderr, "loadline: %s\n", Printable(status.message()).c_str());
  if (ExitCodeFor(status) == kOurBug) {
    std::fprintf(stderr,
                 "loadline: this is a bug of ours; please report it with the "
                 "command line above\n");
  }
  return ExitCodeFor(status);
}

// `loadline`, `loadline help` and `loadline help help` show the verbs,
// `loadline help VERB` its flags.
std::vector<std::string> WithHelpAsFlag(std::vector<std::string> args) {
  if (args.empty()) return {"--help"};
  if (args[0] != "help") return args;
  args.erase(args.begin(),
             std::find_if(args.begin(), args.end(), [](const std::string& arg) {
               return arg != "help";
             }));
  args.push_back("--help");
  return args;
}

// An empty value is a script's unset variable, not a wish for the default. A
// whole number beyond its type would become the nearest one within.
void RefuseUnreadableValues(CLI::App* verb) {
  for (CLI::Option* option : verb->get_options({})) {
    if (option->get_expected_max() == 0) continue;
    if (absl::StartsWith(option->get_type_name(), "INT")) {
      option->check([](const std::string& value) {
        int64_t number = 0;
        const bool digits =
            !value.empty() &&
            value.find_first_not_of("0123456789") == std::string::npos;
        return digits && !absl::SimpleAtoi(value, &number)
                   ? absl::StrCat("must be at most ",
                                  std::numeric_limits<int64_t>::max(),
                                  ", not '", value, "'")
                   : std::string();
      });
    }
    option->check([](const std::string& value) {
      return std::string(value.empty() ? "must not be empty" : "");
    });
  }
}

// Where a configuration file sets the flag that the parser's message begins
// with, or "".
std::string PlaceOfField(const ConfigArgs& config, absl::string_view message) {
  std::string place;
  for (const ConfigField& field : config.fields) {
    if (absl::StartsWith(message, absl::StrCat("--", field.name, ":"))) {
      place = absl::StrCat(" (", field.place, ")");
    }
  }
  return place;
}

// The exit code of a verb that succeeded, once its result is written.
int Finish() {
  const absl::Status written = FlushStandardOutput();
  return written.ok() ? kOk : Fail(written);
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const VerbEntry& verb : kVerbs) names.push_back(verb.name);
  return names;
}

// The first flag that the verb does not have, with the nearest that it has; the
// parser names all words that are left over, values too.
std::string UnknownFlag(const std::vector<std::string>& args,
                        const CLI::App& app) {
  for (const CLI::App* verb : app.get_subcommands()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : verb->get_options({})) {
      for (const std::string& name : option->get_lnames()) {
        known.push_back("--" + name);
      }
    }
    const std::vector<std::string> left = verb->remaining(true);
    for (const std::string& arg : args) {
      const std::string flag = arg.substr(0, arg.find('='));
      if (absl::StartsWith(flag, "-") &&
          std::find(left.begin(), left.end(), arg) != left.end()) {
        return absl::StrCat("unknown flag '", flag, "'",
                            DidYouMean(flag, known), " (loadline ",
                            verb->get_name(), " --help-all lists them)");
      }
    }
  }
  return "";
}

}  // namespace

int RunCommand(std::vector<std::string> args) {
  args = WithHelpAsFlag(std::move(args));
  auto config = ReadConfigs(args);
  if (!config.ok()) return Fail(config.status());
  NoteCommand(args, config->files);
  args = config->args;

  CLI::App app{"", "loadline"};
  app.require_subcommand(1);
  app.set_help_flag("-h,--help", "Show this");
  app.formatter_fn(
      [](const CLI::App* shown, const std::string&, CLI::AppFormatMode mode) {
        return shown->get_parent() == nullptr
                   ? CommandHelpText(DescribeVerbs(*shown))
                   : VerbHelpText(DescribeVerb(*shown),
                                  mode == CLI::AppFormatMode::All);
      });
  app.set_version_flag("--version", std::string(LOADLINE_VERSION));
  bool quiet = false;
  bool verbose = false;
  std::vector<std::pair<CLI::App*, VerbBody>> bodies;
  for (const VerbEntry& verb : kVerbs) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.help);
    sub->footer(absl::StrCat("Example:\n  ", verb.example));
    bodies.emplace_back(sub, verb.add(sub));
    sub->add_option("--config", "YAML file with the same fields as the flags")
        ->type_name("FILE")
        ->group(kRareFlags);
    sub->add_flag("-q,--quiet", quiet, "Warnings only on stderr")
        ->group(kRareFlags);
    sub->add_flag("-v,--verbose", verbose, "More on stderr")->group(kRareFlags);
    sub->set_help_all_flag("--help-all", "Show every flag")->group(kRareFlags);
    RefuseUnreadableValues(sub);
  }
  if (!args.empty() && !absl::StartsWith(args[0], "-")) {
    const bool known =
        std::any_of(std::begin(kVerbs), std::end(kVerbs),
                    [&](const VerbEntry& v) { return args[0] == v.name; });
    if (!known) {
      return Fail(absl::InvalidArgumentError(absl::StrCat(
          "unknown verb '", args[0], "'", DidYouMean(args[0], VerbNames()),
          " (loadline --help lists them)")));
    }
  }
  if (!config->fields.empty()) {
    const auto verb =
        std::find_if(bodies.begin(), bodies.end(), [&](const auto& body) {
          return !args.empty() && args[0] == body.first->get_name();
        });
    if (verb == bodies.end()) {
      return Fail(absl::InvalidArgumentError(
          "--config: give the verb first, such as loadline run --config FILE"));
    }
    auto applied = ApplyConfigs(*config, verb->first);
    if (!applied.ok()) return Fail(applied.status());
    args = *std::move(applied);
  }
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ExtrasError& error) {
    const std::string flag = UnknownFlag(args, app);
    return Fail(absl::InvalidArgumentError(
        !flag.empty() ? absl::StrCat(flag, PlaceOfField(*config, flag))
                      : absl::StrCat(error.what(), " (loadline ", args[0],
                                     " --help shows what it takes)")));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      PrintText(text.str());
      return Finish();
    }
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(error.what(), PlaceOfField(*config, error.what()),
                     " (loadline VERB --help shows the flags)")));
  }
  SetUpLog(quiet, verbose);
  for (const auto& [sub, body] : bodies) {
    if (!sub->parsed()) continue;
    absl::Status status;
    try {
      status = body();
    } catch (const std::bad_alloc&) {
      status = absl::ResourceExhaustedError(absl::StrCat(
          sub->get_name(),
          ": the system gives this process no more memory; close other "
          "programs, raise its limit (ulimit -a shows limits), or use a "
          "smaller --batch"));
    } catch (const std::exception& error) {
      status = absl::InternalError(
          absl::StrCat(sub->get_name(), ": ", error.what()));
    }
    if (!status.ok()) return Fail(status);
  }
  return Finish();
}

}  // namespace loadline::tools
