// Tested by tests/tools/report/report_tables_test.cc.
#include "tools/report/tables.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tools/cli/standard_output.h"
#include "tools/cli/units.h"

namespace loadline::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownTensors = 10;
constexpr size_t kShownModules = 8;

std::string TextOf(const Json& document, const Json& number) {
  return document["texts"][number.get<size_t>()];
}

// Rows of the document's table of values, with texts instead of numbers.
class Values {
 public:
  explicit Values(const Json& document)
      : document_(document), values_(document["values"]) {}

  size_t size() const { return values_["name"].size(); }
  std::string Name(size_t v) const {
    return Text(values_["path"][v]) + values_["name"][v].get<std::string>();
  }
  int64_t Bytes(size_t v) const { return values_["bytes"][v]; }
  std::string Kind(size_t v) const {
    return document_["kinds"][values_["kind"][v].get<size_t>()];
  }
  std::string Of(const char* column, size_t v) const {
    return Text(values_[column][v]);
  }
  // Operator of the node that makes the value; "" if no node does.
  std::string Operator(size_t v) const {
    const int64_t node = values_["node"][v];
    return node < 0
               ? ""
               : Text(
                     document_["nodes"]["operator"][static_cast<size_t>(node)]);
  }

 private:
  std::string Text(const Json& number) const {
    return TextOf(document_, number);
  }

  const Json& document_;
  const Json& values_;
};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Text of the document for Markdown, also in a cell of a table: no HTML, link
// or code comes of a name. Every such text goes through here.
std::string Plain(const std::string& text) {
  return absl::StrReplaceAll(Printable(text), {{"&", "&amp;"},
                                               {"<", "&lt;"},
                                               {">", "&gt;"},
                                               {"`", "\\`"},
                                               {"[", "\\["},
                                               {"]", "\\]"},
                                               {"\\", "\\\\"},
                                               {"|", "\\|"},
                                               {"\n", " "}});
}

// The text as a block of code, with a fence that it does not contain.
std::string CodeBlock(const std::string& text) {
  std::string fence = "```";
  while (absl::StrContains(text, fence)) fence += '`';
  return absl::StrCat(fence, "\n", Printable(text), "\n", fence, "\n");
}

std::string Row(const std::string& name, const std::string& keep,
                const std::string& plan) {
  return fmt::format("| {} | {} | {} |\n", name, keep, plan);
}

std::string FigureTable(const Json& document) {
  const Json& s = document["summary"];
  const auto bytes = [&s](const char* field) {
    return FormatBytes(s[field].get<int64_t>());
  };
  const auto ns = [&s](const char* field) {
    return FormatNs(s[field].get<int64_t>());
  };
  std::string out = "| | keep everything | plan |\n|---|---:|---:|\n";
  out += Row("peak", bytes("keep_everything_peak_bytes"),
             bytes("predicted_peak_bytes"));
  out +=
      Row("arena", bytes("keep_everything_arena_bytes"), bytes("arena_bytes"));
  out +=
      Row("step time", ns("keep_everything_step_ns"), ns("predicted_step_ns"));
  out += Row("recomputed", "-",
             absl::StrCat(ns("recompute_ns"), " of ",
                          s["recomputed_values"].get<int64_t>(), " values"));
  out += Row("copied out, in", "-",
             absl::StrCat(bytes("d2h_bytes"), ", ", bytes("h2d_bytes")));
  if (s.contains("compressed_values")) {
    out += Row("stored compressed", "-",
               absl::StrCat(bytes("compressed_bytes"), " of ",
                            s["compressed_values"].get<int64_t>(), " values, ",
                            bytes("compression_saved_bytes"), " saved"));
  }
  out += Row("waiting for copies", "-", ns("stall_ns"));
  out += Row("host store", "-", bytes("host_bytes"));
  out +=
      Row("proven: no plan below", "-",
          absl::StrCat(bytes("bound_peak_bytes"), ", ", ns("bound_step_ns")));
  if (document.contains("measured")) {
    const Json& measured = document["measured"];
    out += Row("measured", "-",
               absl::StrCat(FormatBytes(measured["arena_bytes"]), ", ",
                            FormatNs(measured["step_ns"])));
  }
  return out;
}

struct ModuleTotal {
  std::string name;
  int64_t peak_bytes = 0;
  int64_t again_ns = 0;
};

// Live bytes at the peak and recomputation time by module, most bytes first.
std::vector<ModuleTotal> ModuleTotals(const Json& document) {
  const auto text = [&document](const Json& number) {
    return TextOf(document, number);
  };
  std::map<std::string, ModuleTotal> totals;
  const Json& live = document["samples"]["live_bytes"];
  const auto peak = std::max_element(
      live.begin(), live.end(), [](const Json& a, const Json& b) {
        return a.get<int64_t>() < b.get<int64_t>();
      });
  const int64_t at = peak - live.begin();
  const Json& buffers = document["buffers"];
  for (size_t b = 0; b < buffers["value"].size(); ++b) {
    if (buffers["from"][b] > at || buffers["to"][b] <= at) continue;
    const int64_t value = buffers["value"][b];
    const std::string module =
        value < 0
            ? "workspace"
            : text(document["values"]["module"][static_cast<size_t>(value)]);
    totals[module].peak_bytes += buffers["bytes"][b].get<int64_t>();
  }
  const Json& steps = document["steps"];
  for (size_t s = 0; s < steps["node"].size(); ++s) {
    if (steps["again"][s] == 0) continue;
    const size_t node = steps["node"][s];
    totals[text(document["nodes"]["module"][node])].again_ns +=
        document["nodes"]["time_ns"][node].get<int64_t>();
  }
  std::vector<ModuleTotal> list;
  for (auto& [name, total] : totals) {
    total.name = name.empty() ? "(none)" : name;
    list.push_back(total);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const ModuleTotal& a, const ModuleTotal& b) {
                     return a.peak_bytes > b.peak_bytes;
                   });
  return list;
}

std::string ModuleTable(const Json& document) {
  const std::vector<ModuleTotal> modules = ModuleTotals(document);
  std::string out = fmt::format(
      "The modules that hold the peak{}:\n\n"
      "| module | at the peak | recomputed |\n|---|---:|---:|\n",
      modules.size() > kShownModules
          ? fmt::format(", the first {} of {}", kShownModules, modules.size())
          : "");
  for (size_t i = 0; i < modules.size() && i < kShownModules; ++i) {
    out += Row(Plain(modules[i].name), FormatBytes(modules[i].peak_bytes),
               FormatNs(modules[i].again_ns));
  }
  return out;
}

std::string TensorTable(const Values& values) {
  std::vector<size_t> changed;
  for (size_t v = 0; v < values.size(); ++v) {
    const std::string action = values.Of("action", v);
    if (!action.empty() && action != "keep") changed.push_back(v);
  }
  if (changed.empty()) return "Every tensor is kept.\n";
  std::stable_sort(changed.begin(), changed.end(), [&](size_t a, size_t b) {
    return values.Bytes(a) > values.Bytes(b);
  });
  std::string out = fmt::format(
      "Not kept, the largest of {}:\n\n"
      "| tensor | bytes | action | reason |\n|---|---:|---|---|\n",
      FormatCount(static_cast<int64_t>(changed.size())));
  for (size_t i = 0; i < changed.size() && i < kShownTensors; ++i) {
    const size_t v = changed[i];
    out +=
        fmt::format("| {} | {} | {} | {} |\n", Plain(values.Name(v)),
                    FormatBytes(values.Bytes(v)), Plain(values.Of("action", v)),
                    Plain(values.Of("reason", v)));
  }
  return out;
}

}  // namespace

std::string TensorCsv(const Json& document) {
  const Values values(document);
  std::string out = "name,bytes,kind,action,reason,module,operator\n";
  for (size_t v = 0; v < values.size(); ++v) {
    absl::StrAppend(&out, CsvField(values.Name(v)), ",", values.Bytes(v), ",",
                    CsvField(values.Kind(v)), ",", values.Of("action", v), ",",
                    CsvField(values.Of("reason", v)), ",",
                    CsvField(values.Of("module", v)), ",",
                    CsvField(values.Operator(v)), "\n");
  }
  return out;
}

std::string ReportMarkdown(const Json& document) {
  const Json& summary = document["summary"];
  std::string out = fmt::format(
      "### {} in {}\n\n{}\n\n{}\n{}\n{}\n",
      Plain(summary["problem"].get<std::string>()),
      FormatBytes(summary["budget_bytes"].get<int64_t>()),
      Plain(summary["verdict"].get<std::string>()), FigureTable(document),
      ModuleTable(document), TensorTable(Values(document)));
  for (const Json& line : document["assumptions"]) {
    absl::StrAppend(&out, "- ", Plain(line.get<std::string>()), "\n");
  }
  return absl::StrCat(out, "\nReproduce with:\n\n",
                      CodeBlock(document["command"].get<std::string>()));
}

}  // namespace loadline::tools
