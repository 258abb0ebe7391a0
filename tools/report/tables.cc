// Tested by tests/tools/report_tables_test.cc.
#include "tools/report/tables.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tools/units.h"

namespace loadline::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownTensors = 10;

// Rows of the document's table of values, with texts in place of numbers.
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
  // Of the node that makes it; "" for what no node makes.
  std::string Operator(size_t v) const {
    const int64_t node = values_["node"][v];
    return node < 0
               ? ""
               : Text(
                     document_["nodes"]["operator"][static_cast<size_t>(node)]);
  }

 private:
  std::string Text(const Json& number) const {
    return document_["texts"][number.get<size_t>()];
  }

  const Json& document_;
  const Json& values_;
};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Inside a cell of a table.
std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}});
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
  out += Row("waiting for copies", "-", ns("stall_ns"));
  out += Row("host memory", "-", bytes("host_bytes"));
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
      "The largest of {} tensors that are not kept:\n\n"
      "| tensor | bytes | action | reason |\n|---|---:|---|---|\n",
      FormatCount(static_cast<int64_t>(changed.size())));
  for (size_t i = 0; i < changed.size() && i < kShownTensors; ++i) {
    const size_t v = changed[i];
    out += fmt::format("| {} | {} | {} | {} |\n", Cell(values.Name(v)),
                       FormatBytes(values.Bytes(v)), values.Of("action", v),
                       Cell(values.Of("reason", v)));
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
      "### {} in {}\n\n{}\n\n{}\n{}\n", summary["problem"].get<std::string>(),
      FormatBytes(summary["budget_bytes"].get<int64_t>()),
      summary["verdict"].get<std::string>(), FigureTable(document),
      TensorTable(Values(document)));
  for (const Json& line : document["assumptions"]) {
    absl::StrAppend(&out, "- ", line.get<std::string>(), "\n");
  }
  return absl::StrCat(out, "\nMade again by:\n\n```\n",
                      document["command"].get<std::string>(), "\n```\n");
}

}  // namespace loadline::tools
