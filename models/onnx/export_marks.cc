// The exporter writes the kind of each initializer at its value_info; the
// signature of the exported program at the graph, which also lists tensors that
// are no initializers any more; and at each node the PyTorch operation that it
// came from. Tested in tests/models/onnx_export_marks_test.cc.
#include "models/onnx/export_marks.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/producers.h"

namespace loadline::models::onnx_internal {
namespace {

constexpr char kKind[] = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr char kComputedFrom[] = "pkg.onnxscript.optimizer.folded_from";
constexpr char kSignature[] =
    "pkg.torch.export.ExportedProgram.graph_signature";
constexpr char kRewritten[] = "pkg.onnxscript.rewriter.rule_name";
constexpr char kDetach[] = "target=torch.ops.aten.detach";
constexpr char kMaxOverOne[] = "target=torch.ops.aten.max.dim]";
constexpr char kMinOverOne[] = "target=torch.ops.aten.min.dim]";
constexpr char kCrossEntropy[] =
    "target=torch.ops.aten.cross_entropy_loss.default";
constexpr char kAveragePool[] = "target=torch.ops.aten.avg_pool2d.default";
constexpr char kScatterReduce[] = "target=torch.ops.aten.scatter_reduce.two";
constexpr char kEmbedding[] =
    "target=torch.ops.aten.embedding.default](args = (";

// The names in a Python list of strings: "['a', 'b']".
std::vector<std::string> QuotedNames(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '\'');
  std::vector<std::string> names;
  for (size_t i = 1; i < parts.size(); i += 2) names.emplace_back(parts[i]);
  return names;
}

struct Original {
  std::string placeholder;  // its name in operations
  std::string target;       // its name in the module
  Mark mark;
};

// From lines such as "p_fc_weight: PARAMETER target='fc.weight'".
std::vector<Original> ReadSignature(absl::string_view text) {
  std::vector<Original> originals;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(": "), absl::SkipEmpty());
    if (words.size() < 3) continue;
    const bool parameter = words[1] == "PARAMETER";
    if (!parameter && words[1] != "BUFFER" && words[1] != "CONSTANT_TENSOR") {
      continue;
    }
    const std::vector<std::string> target = QuotedNames(line);
    if (target.empty()) continue;
    originals.push_back({std::string(words[0]), target[0],
                         parameter ? Mark::kParameter : Mark::kBuffer});
  }
  return originals;
}

// From the same lines and "x: USER_INPUT": the first word of each.
std::set<std::string> ReadPlaceholders(absl::string_view text) {
  std::set<std::string> names;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(": "), absl::SkipEmpty());
    if (words.size() >= 2 &&
        (words[1] == "USER_INPUT" || words[1] == "PARAMETER" ||
         words[1] == "BUFFER" || words[1] == "CONSTANT_TENSOR")) {
      names.emplace(words[0]);
    }
  }
  return names;
}

// From lines such as "add_1: BUFFER_MUTATION target='ema.codebook'": buffers
// that the module changes in its forward pass.
std::vector<std::string> ReadMutations(absl::string_view text) {
  std::vector<std::string> changed;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StrContains(line, ": BUFFER_MUTATION ")) continue;
    const std::vector<std::string> target = QuotedNames(line);
    if (!target.empty()) changed.push_back(target[0]);
  }
  return changed;
}

// The initializers whose contents the step depends on: training keeps running
// statistics up to date itself, also where a converter to f16 casts them.
std::set<std::string> ReadTensors(const onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const auto& output : graph.output()) read.insert(output.name());
  for (int n = graph.node_size() - 1; n >= 0; --n) {
    const auto& node = graph.node(n);
    if ((node.op_type() == "Cast" || node.op_type() == "Identity") &&
        node.output_size() == 1 && read.count(node.output(0)) == 0) {
      continue;
    }
    const int statistics = node.op_type() == "BatchNormalization" ? 3 : INT_MAX;
    for (int i = 0; i < node.input_size() && i < statistics; ++i) {
      read.insert(node.input(i));
    }
  }
  return read;
}

// Of buffers that the module changes, where the file has them as constants that
// the step depends on. The exporter leaves the changes out.
void FindConstantBuffers(const onnx::GraphProto& graph,
                         absl::string_view signature, ExportMarks* marks) {
  std::set<std::string> changed;
  for (std::string& name : ReadMutations(signature)) {
    changed.insert(std::move(name));
  }
  if (changed.empty()) return;
  const std::set<std::string> read = ReadTensors(graph);
  std::set<std::string> constant;
  for (const auto& tensor : graph.initializer()) {
    if (read.count(tensor.name()) == 0) continue;
    if (changed.count(tensor.name()) != 0) constant.insert(tensor.name());
    const auto sources = marks->computed_from.find(tensor.name());
    if (sources == marks->computed_from.end()) continue;
    for (const std::string& source : sources->second) {
      if (changed.count(source) != 0) constant.insert(source);
    }
  }
  if (constant.empty()) return;
  marks->left_out.push_back(absl::StrCat(
      "the exporter left out that the module changes ",
      absl::StrJoin(constant, ", "),
      " in its forward pass: the values of the file stay, so from the second "
      "step on this is another training than PyTorch's; loadline.torch.prepare "
      "keeps such changes"));
}

// Whether the operation reads %name.
bool Reads(absl::string_view operation, absl::string_view name) {
  const std::string token = absl::StrCat("%", name);
  for (size_t at = operation.find(token); at != absl::string_view::npos;
       at = operation.find(token, at + 1)) {
    const size_t end = at + token.size();
    if (end == operation.size() ||
        (operation[end] != '_' &&
         std::isalnum(static_cast<unsigned char>(operation[end])) == 0)) {
      return true;
    }
  }
  return false;
}

// Whether the node reads a parameter that the operation does not.
bool ReadsAnother(const onnx::NodeProto& node, absl::string_view operation,
                  const std::map<std::string, std::string>& placeholders,
                  const ExportMarks& marks) {
  for (const std::string& name : node.input()) {
    auto mark = marks.marks.find(name);
    if (mark == marks.marks.end() || mark->second != Mark::kParameter) continue;
    auto placeholder = placeholders.find(name);
    if (placeholder == placeholders.end() ||
        !Reads(operation, placeholder->second)) {
      return true;
    }
  }
  return false;
}

// Finds tensors that are no initializers any more, although a node is there
// that was made from an operation on them and reads a parameter in their place.
void FindReplaced(const onnx::GraphProto& graph,
                  const std::vector<Original>& originals, ExportMarks* marks) {
  std::set<std::string> present;
  for (const auto& tensor : graph.initializer()) present.insert(tensor.name());
  for (const auto& [name, sources] : marks->computed_from) {
    present.insert(sources.begin(), sources.end());
  }
  std::map<std::string, std::string> placeholders;
  std::vector<const Original*> absent;
  for (const Original& original : originals) {
    placeholders[original.target] = original.placeholder;
    if (present.count(original.target) == 0) absent.push_back(&original);
  }
  std::set<std::string> found;
  for (const auto& node : graph.node()) {
    const absl::string_view operation = Metadata(node, kPytorchCall);
    if (absent.empty() || operation.empty() ||
        !ReadsAnother(node, operation, placeholders, *marks)) {
      continue;
    }
    const bool rewritten = !Metadata(node, kRewritten).empty();
    for (const Original* original : absent) {
      if (Reads(operation, original->placeholder) &&
          found.insert(original->target).second) {
        (rewritten ? marks->rewritten : marks->merged)
            .push_back(original->target);
      }
    }
  }
}

// From "...](args = (%weight, %indices, 1), kwargs = {})": table, indices and
// padding_idx, which is below 0 or missing where there is none.
std::optional<int64_t> PaddingRow(absl::string_view operation) {
  const size_t at = operation.find(kEmbedding);
  if (at == absl::string_view::npos) return std::nullopt;
  operation.remove_prefix(at + sizeof(kEmbedding) - 1);
  const std::vector<absl::string_view> arguments =
      absl::StrSplit(operation.substr(0, operation.find(')')), ", ");
  int64_t row = -1;
  if (arguments.size() < 3 || !absl::SimpleAtoi(arguments[2], &row) ||
      row < 0) {
    return std::nullopt;
  }
  return row;
}

// "a, b, 3" of "...](args = (%x, a, b, 3), kwargs = {})", split at its commas.
std::vector<absl::string_view> ArgumentsOf(absl::string_view operation) {
  constexpr char kArguments[] = "](args = (";
  const size_t at = operation.find(kArguments);
  if (at == absl::string_view::npos) return {};
  operation.remove_prefix(at + sizeof(kArguments) - 1);
  return absl::StrSplit(operation.substr(0, operation.find(')')), ", ");
}

// What the exporter does not write of the operation, and what to do; empty:
// nothing is known of.
std::string LeftOut(absl::string_view operation, absl::string_view op) {
  const std::vector<absl::string_view> arguments = ArgumentsOf(operation);
  const size_t n = arguments.size();
  double number = 0;
  if (op == "SoftmaxCrossEntropyLoss" &&
      absl::StrContains(operation, kCrossEntropy) && n >= 6 &&
      absl::SimpleAtod(arguments[5], &number) && number != 0) {
    return absl::StrCat(
        "label_smoothing=", number,
        ", so this is another loss than PyTorch's; write it as operators, or "
        "give the model without its loss --label-smoothing");
  }
  // The lists before have commas too.
  if (op == "AveragePool" && absl::StrContains(operation, kAveragePool) &&
      n >= 2 && (arguments[n - 2] == "True" || arguments[n - 2] == "False") &&
      absl::SimpleAtod(arguments[n - 1], &number)) {
    return absl::StrCat("divisor_override=", number,
                        "; multiply the result of the pool instead");
  }
  if (op == "ScatterElements" && absl::StrContains(operation, kScatterReduce) &&
      n == 5 && arguments[4] == "mean") {
    return "reduce='mean' and writes the last value; divide a scatter_add by "
           "one of ones";
  }
  return "";
}

// The only row of zeros of a table of several other rows, or -1.
int64_t OnlyZeroRow(const Tensor& table) {
  if (table.type.rank() != 2 || table.type.dtype != DType::kF32 ||
      table.data == nullptr || table.type.dims[0] < 3) {
    return -1;
  }
  const auto width = static_cast<size_t>(table.type.dims[1]);
  const absl::Span<const float> numbers = table.as<float>();
  int64_t found = -1;
  for (int64_t row = 0; row < table.type.dims[0]; ++row) {
    const auto of_row =
        numbers.subspan(static_cast<size_t>(row) * width, width);
    if (std::any_of(of_row.begin(), of_row.end(),
                    [](float x) { return x != 0; })) {
      continue;
    }
    if (found >= 0) return -1;
    found = row;
  }
  return found;
}

}  // namespace

std::vector<std::string> FindPaddingRows(
    const onnx::ModelProto& model,
    const std::map<std::string, Tensor>& initializers, ExportMarks* marks) {
  std::vector<std::string> warnings;
  if (model.producer_name() != kPyTorch || !marks->marks.empty()) {
    return warnings;
  }
  std::map<std::string, int64_t> rows;  // of the tables seen
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != "Gather" || node.input_size() != 2 ||
        node.output_size() != 1 || IntAttribute(node, "axis", 0) != 0) {
      continue;
    }
    const std::string& name = node.input(0);
    const auto table = initializers.find(name);
    if (table == initializers.end()) continue;
    const auto [row, is_new] = rows.emplace(name, -1);
    if (is_new) {
      row->second = OnlyZeroRow(table->second);
      if (row->second >= 0) {
        warnings.push_back(absl::StrCat(
            "row ", row->second, " of ", name,
            " is all zeros, as PyTorch's padding_idx makes it, and gets no "
            "gradient from look-ups"));
      }
    }
    if (row->second >= 0) marks->padding_row[node.output(0)] = row->second;
  }
  return warnings;
}

ExportMarks ReadExportMarks(const onnx::GraphProto& graph) {
  ExportMarks marks;
  const std::vector<Original> originals =
      ReadSignature(Metadata(graph, kSignature));
  for (const Original& original : originals) {
    marks.marks[original.target] = original.mark;
  }
  marks.placeholders = ReadPlaceholders(Metadata(graph, kSignature));
  for (const auto& info : graph.value_info()) {
    const absl::string_view kind = Metadata(info, kKind);
    if (kind == "PARAMETER") {
      marks.marks[info.name()] = Mark::kParameter;
    } else if (kind == "BUFFER" || kind == "CONSTANT_TENSOR") {
      marks.marks[info.name()] = Mark::kBuffer;
    }
    const absl::string_view sources = Metadata(info, kComputedFrom);
    if (!sources.empty()) {
      marks.computed_from[info.name()] = QuotedNames(sources);
    }
  }
  FindReplaced(graph, originals, &marks);
  FindConstantBuffers(graph, Metadata(graph, kSignature), &marks);
  std::set<absl::string_view> said;
  for (const auto& node : graph.node()) {
    const absl::string_view operation = Metadata(node, kPytorchCall);
    if (absl::StrContains(operation, kDetach)) {
      marks.detached.insert(node.output().begin(), node.output().end());
    }
    const std::optional<int64_t> row = PaddingRow(operation);
    if (row && node.op_type() == "Gather") {
      marks.padding_row[node.output(0)] = *row;
    }
    const bool extreme =
        node.op_type() == "ReduceMax" || node.op_type() == "ReduceMin";
    if (extreme && (absl::StrContains(operation, kMaxOverOne) ||
                    absl::StrContains(operation, kMinOverOne))) {
      marks.first_of_ties.insert(node.output(0));
    }
    const std::string left_out = LeftOut(operation, node.op_type());
    // An operation may become several nodes.
    if (!left_out.empty() && said.insert(operation).second) {
      marks.left_out.push_back(absl::StrCat("the exporter left out of '",
                                            node.output(0), "': ", left_out));
    }
  }
  return marks;
}

}  // namespace loadline::models::onnx_internal
