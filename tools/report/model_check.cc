// Goes through the stages of `run` (import, loss, backward, optimizer, kernels,
// data)
// as far as possible, and collects their findings. Tested by
// tests/tools/report/model_check_test.cc.
#include "tools/report/model_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/program/program.h"
#include "executor/train/data.h"
#include "fmt/format.h"
#include "models/onnx/declared_inputs.h"
#include "models/storage.h"
#include "nlohmann/json.hpp"
#include "passes/add_loss.h"
#include "passes/remove_unread_inputs.h"
#include "planner/base/status_macros.h"
#include "tools/cli/units.h"
#include "tools/cli/wrap.h"
#include "tools/pipeline/import_model.h"
#include "tools/pipeline/load_data.h"
#include "tools/pipeline/loss_options.h"
#include "tools/pipeline/plan_training_step.h"

namespace loadline::tools {
namespace {

using models::Graph;
using models::ValueKind;

std::string FlagFor(const models::DeclaredInput& input, size_t axis) {
  const std::string& name = (*input.axes)[axis].name;
  if (axis == 0) return "--batch N";
  if (!name.empty()) return absl::StrCat("--dim ", name, "=N");
  std::vector<std::string> dims;
  for (const models::DeclaredAxis& a : *input.axes) {
    dims.push_back(a.size.has_value() ? absl::StrCat(*a.size) : "N");
  }
  return absl::StrCat("--input-shape ", input.name, "=",
                      absl::StrJoin(dims, "x"));
}

std::vector<OpenAxis> OpenAxes(const std::vector<models::DeclaredInput>& inputs,
                               const models::ImportOptions& options) {
  std::vector<OpenAxis> open;
  for (const models::DeclaredInput& input : inputs) {
    if (!input.axes.has_value()) {
      const bool given = options.input_shapes.count(input.name) > 0;
      open.push_back({input.name, -1, "", given ? 1 : 0,
                      absl::StrCat("--input-shape ", input.name, "=NxN")});
      continue;
    }
    for (size_t axis = 0; axis < input.axes->size(); ++axis) {
      const models::DeclaredAxis& declared = (*input.axes)[axis];
      if (declared.size.has_value()) continue;
      open.push_back({input.name, static_cast<int64_t>(axis), declared.name,
                      GivenSize(input, axis, options).value_or(0),
                      FlagFor(input, axis)});
    }
  }
  return open;
}

// "image f32[32,1,8,8]".
std::string Described(const Graph& graph, models::ValueId id) {
  return absl::StrCat(graph.value(id).name, " ",
                      graph.value(id).type.ToString());
}

void Describe(const models::Imported& imported, ModelCheck* check) {
  const Graph& graph = imported.graph;
  check->imported = true;
  check->warnings = imported.warnings;
  check->forms = imported.forms;
  check->roles = imported.roles;
  for (models::ValueId id : graph.inputs) {
    check->inputs.push_back(Described(graph, id));
  }
  std::set<std::string> operators;
  for (const models::Node& node : graph.nodes) operators.insert(node.op);
  check->nodes = static_cast<int64_t>(graph.nodes.size());
  check->operators = static_cast<int64_t>(operators.size());
}

// The inputs that `prediction` depends on, and the names of the others.
void DescribeInputs(const Graph& graph, models::ValueId prediction,
                    ModelCheck* check) {
  const std::vector<models::ValueId> read =
      passes::InputsRead(graph, {prediction});
  check->inputs.clear();  // of all of the model's outputs
  for (models::ValueId id : graph.inputs) {
    if (std::find(read.begin(), read.end(), id) == read.end()) {
      check->not_read.push_back(graph.value(id).name);
    } else {
      check->inputs.push_back(Described(graph, id));
    }
  }
}

// Adds only the loss, to a copy: later passes can fail too. Describes the
// inputs and the loss.
absl::Status CheckLoss(Graph graph, const LossFlags& given,
                       const std::string& path, ModelCheck* check) {
  if (graph.outputs.empty()) {
    return absl::InvalidArgumentError("the model has no output");
  }
  LOADLINE_ASSIGN_OR_RETURN(const LossFlags flags,
                            WithGraphsOutputName(graph, given, path));
  models::ValueId prediction = graph.outputs[0];
  for (models::ValueId id : graph.outputs) {
    if (graph.value(id).name == flags.output) prediction = id;
  }
  DescribeInputs(graph, prediction, check);
  std::string warning = LossWarning(graph, flags);
  if (!warning.empty()) check->warnings.push_back(std::move(warning));
  check->loss = absl::StrCat(flags.loss, " of ", Described(graph, prediction));
  LOADLINE_RETURN_IF_ERROR(CheckBatchAxes(graph, flags, path));
  LOADLINE_ASSIGN_OR_RETURN(const passes::LossOptions loss,
                            LossFor(graph, given, path));
  LOADLINE_RETURN_IF_ERROR(passes::AddLoss(graph, loss));
  if (loss.kind == passes::LossKind::kModel) return absl::OkStatus();
  absl::StrAppend(&check->loss, " against target ", loss.target.ToString());
  return absl::OkStatus();
}

// Counts parameters that the step updates, and lists the others.
void CountParameters(const Graph& step, ModelCheck* check) {
  std::set<models::ValueId> updated;
  for (const auto& [value, next] : step.updates) updated.insert(value);
  for (size_t i = 0; i < step.values.size(); ++i) {
    const models::Value& value = step.values[i];
    if (value.kind != ValueKind::kParameter) continue;
    if (updated.count(static_cast<models::ValueId>(i)) == 0) {
      check->without_gradient.push_back(value.name);
      continue;
    }
    ++check->parameters;
    check->parameter_elements += value.type.elements();
    check->parameter_bytes += value.type.bytes();
  }
}

absl::Status CheckKernels(const Graph& step, executor::Device& device) {
  for (const models::Node& node : step.nodes) {
    if (models::IsView(node)) continue;
    LOADLINE_RETURN_IF_ERROR(device.Prepare(step, node).status());
  }
  return absl::OkStatus();
}

// Every array, and enough of them for one batch: as `run` does before it
// trains.
absl::Status CheckData(const Graph& step, const LossFlags& flags) {
  if (flags.data.empty()) return absl::OkStatus();
  LOADLINE_ASSIGN_OR_RETURN(const executor::DataSet data,
                            LoadDataFor(flags, step));
  const auto batches = executor::Batcher::Create(
      data, executor::BatchOf(step).value_or(0), /*seed=*/0, /*shuffle=*/false);
  if (batches.ok()) return absl::OkStatus();
  return absl::Status(
      batches.status().code(),
      absl::StrCat(flags.data, ": ", batches.status().message()));
}

std::string ErrorText(const reference::GradientCheck& of_op) {
  return fmt::format("{:.1e} at '{}' ({})", of_op.worst, of_op.node,
                     of_op.types);
}

// Internal, naming every operator whose rule is wrong.
absl::Status GradientStatus(
    const std::vector<reference::GradientCheck>& gradients) {
  std::vector<std::string> wrong;
  for (const reference::GradientCheck& of_op : gradients) {
    if (!of_op.Wrong()) continue;
    wrong.push_back(
        absl::StrCat(of_op.op, ", relative error ", ErrorText(of_op)));
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("gradients that differ from finite differences: ",
                   absl::StrJoin(wrong, "; ")));
}

absl::Status CheckStep(Graph model, const StepFlags& flags,
                       executor::Device& device,
                       const reference::GradientCheckOptions* gradients,
                       ModelCheck* check) {
  LOADLINE_ASSIGN_OR_RETURN(const Graph step,
                            BuildStep(std::move(model), flags));
  CountParameters(step, check);
  LOADLINE_RETURN_IF_ERROR(executor::CheckHasContents(step));
  LOADLINE_RETURN_IF_ERROR(CheckKernels(step, device));
  LOADLINE_RETURN_IF_ERROR(CheckData(step, flags.loss));
  if (gradients == nullptr) return absl::OkStatus();
  check->gradients = reference::CheckGradients(step, *gradients);
  return GradientStatus(check->gradients);
}

std::string Forms(const std::string& name, int training, int restored,
                  const std::string& others) {
  std::string text =
      training == 0 ? absl::StrCat("no ", name)
                    : absl::StrCat(training, " ", name, " in training form");
  if (restored > 0) {
    absl::StrAppend(&text, " (", restored, " put back from inference form)");
  }
  return absl::StrCat(text, others);
}

std::string TrainingRow(const models::TrainingForms& forms) {
  const auto others = [](int count, const char* what) {
    return count == 0 ? std::string() : absl::StrCat(", ", count, what);
  };
  return absl::StrCat(
      Forms("BatchNormalization", forms.batch_norms, forms.batch_norms_restored,
            others(forms.batch_norms_fixed, " with fixed statistics")),
      "; ",
      Forms("Dropout", forms.dropouts, forms.dropouts_restored,
            others(forms.dropouts_off, " switched off")));
}

std::string ParameterRow(const ModelCheck& check) {
  return fmt::format(
      "{} trained, {} numbers in {}; {}", FormatCount(check.parameters),
      FormatCount(check.parameter_elements), FormatBytes(check.parameter_bytes),
      check.without_gradient.empty()
          ? "every one has a gradient"
          : "without a gradient: " +
                absl::StrJoin(check.without_gradient, ", "));
}

// One row per reason, in the order of the first tensor with it: "2, a buffer,
// as the exporter says: mean, std".
std::vector<std::string> RoleRows(
    const std::vector<models::InitializerRole>& roles, bool trained) {
  constexpr size_t kMostNames = 4;
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<std::string>> names;
  for (const models::InitializerRole& role : roles) {
    if (role.trained != trained) continue;
    if (names[role.why].empty()) reasons.push_back(role.why);
    names[role.why].push_back(role.name);
  }
  std::vector<std::string> rows;
  for (const std::string& why : reasons) {
    std::vector<std::string>& alike = names[why];
    const size_t count = alike.size();
    alike.resize(std::min(count, kMostNames));
    rows.push_back(absl::StrCat(
        count, ", ", why, ": ", absl::StrJoin(alike, ", "),
        count > kMostNames ? absl::StrCat(" and ", count - kMostNames, " more")
                           : ""));
  }
  return rows;
}

std::string NotReadRow(const std::vector<std::string>& inputs) {
  return absl::StrCat(absl::StrJoin(inputs, ", "), ": --data needs no ",
                      inputs.size() == 1 ? "array for it" : "arrays for them");
}

std::string GradientRow(const reference::GradientCheck& of_op) {
  std::string text = fmt::format("{} x{}: ", of_op.op, of_op.nodes);
  if (of_op.checked > 0) {
    absl::StrAppend(&text, of_op.Wrong() ? "WRONG, " : "", ErrorText(of_op));
  } else {
    absl::StrAppend(&text, "not checked");
  }
  if (of_op.smaller > 0) {
    absl::StrAppend(&text, "; ", of_op.smaller, " with shorter axes");
  }
  if (of_op.skipped > 0) {
    absl::StrAppend(&text, "; ", of_op.skipped, " left out: ", of_op.why);
  }
  return text;
}

std::string AxisRow(const OpenAxis& axis) {
  if (axis.axis < 0) {
    return absl::StrCat(axis.input, " has no shape in the file: ", axis.flag);
  }
  return absl::StrCat(
      axis.input, " axis ", axis.axis,
      axis.name.empty() ? "" : absl::StrCat(" ('", axis.name, "')"), " = ",
      axis.size == 0 ? "not set" : absl::StrCat(axis.size), ", by ", axis.flag);
}

// Flags that the user still has to give.
std::vector<std::string> MissingFlags(const ModelCheck& check) {
  std::vector<std::string> flags;
  for (const OpenAxis& axis : check.open_axes) {
    if (axis.size != 0) continue;
    if (flags.empty() || flags.back() != axis.flag) flags.push_back(axis.flag);
  }
  return flags;
}

}  // namespace

bool ModelCheck::AsExported() const {
  return status.ok() && warnings.empty() && forms.batch_norms_restored == 0 &&
         forms.dropouts_restored == 0;
}

absl::StatusOr<ModelCheck> CheckModel(
    const StepFlags& flags, executor::Device& device,
    const reference::GradientCheckOptions* gradients) {
  ModelCheck check;
  check.model = flags.model.model;
  LOADLINE_ASSIGN_OR_RETURN(const models::ImportOptions options,
                            ImportOptionsFor(flags.model, /*training=*/true));
  LOADLINE_ASSIGN_OR_RETURN(const auto declared,
                            ReadDeclared(check.model, options));
  check.open_axes = OpenAxes(declared.inputs, options);
  check.not_read = declared.unread_inputs;
  auto imported = models::ImportOnnx(check.model, options);
  check.status = imported.status();
  check.unsupported = models::UnsupportedOperators(check.status);
  if (!imported.ok()) return check;
  Describe(*imported, &check);
  check.loss_status =
      CheckLoss(imported->graph, flags.loss, flags.model.model, &check);
  check.status = check.loss_status;
  if (check.status.ok()) {
    check.status =
        CheckStep(std::move(imported->graph), flags, device, gradients, &check);
  }
  return check;
}

std::string CheckVerdict(const ModelCheck& check) {
  if (check.AsExported()) return "Trains as exported.";
  if (check.status.ok()) {
    return "Trains, with changes to the exported model: see the warnings.";
  }
  if (!check.unsupported.empty()) {
    size_t nodes = 0;
    for (const auto& op : check.unsupported) nodes += op.nodes.size();
    const size_t operators = check.unsupported.size();
    return absl::StrCat("Not supported: ", operators,
                        operators == 1 ? " operator in " : " operators in ",
                        nodes, nodes == 1 ? " node." : " nodes.");
  }
  const std::vector<std::string> missing = MissingFlags(check);
  if (!check.imported && !missing.empty()) {
    return absl::StrCat("Give ", absl::StrJoin(missing, " and "),
                        "; the rest is checked then.");
  }
  return absl::StrCat("Does not train: ", check.status.message());
}

std::string CheckTable(const ModelCheck& check) {
  constexpr size_t kIndent = 14;
  std::string out;
  const auto row = [&out](absl::string_view name, absl::string_view text) {
    out += WrappedRow(name, text, kIndent);
  };
  row("model", check.model);
  for (size_t i = 0; i < check.inputs.size(); ++i) {
    row(i == 0 ? "inputs" : "", check.inputs[i]);
  }
  if (!check.not_read.empty()) row("not read", NotReadRow(check.not_read));
  for (size_t i = 0; i < check.open_axes.size(); ++i) {
    row(i == 0 ? "open axes" : "", AxisRow(check.open_axes[i]));
  }
  if (check.imported) {
    row("operators", fmt::format("{} nodes of {} kinds, all supported",
                                 FormatCount(check.nodes), check.operators));
    row("training", TrainingRow(check.forms));
    if (check.parameters > 0) row("parameters", ParameterRow(check));
    for (const bool trained : {true, false}) {
      const std::string title = trained ? "trained" : "not trained";
      const std::vector<std::string> rows = RoleRows(check.roles, trained);
      for (size_t i = 0; i < rows.size(); ++i)
        row(i == 0 ? title : "", rows[i]);
    }
    row("loss", check.loss_status.ok()
                    ? check.loss
                    : absl::StrCat(check.loss, " does not fit: ",
                                   check.loss_status.message()));
  }
  if (!check.gradients.empty()) {
    row("gradients",
        "worst relative error of each operator's rule against finite "
        "differences in double");
  }
  for (const reference::GradientCheck& of_op : check.gradients) {
    row("", GradientRow(of_op));
  }
  for (const models::UnsupportedOperator& op : check.unsupported) {
    row("unsupported",
        absl::StrCat(op.name, op.why.empty() ? "" : " (" + op.why + ")", " x",
                     op.nodes.size(), ": ", absl::StrJoin(op.nodes, ", ")));
  }
  if (!check.unsupported.empty()) {
    row("what to do", models::UnsupportedAdvice(check.status));
  }
  for (const std::string& warning : check.warnings) row("warning", warning);
  return absl::StrCat(out, "\n", Wrapped(CheckVerdict(check), 0), "\n");
}

nlohmann::ordered_json CheckJson(const ModelCheck& check) {
  nlohmann::ordered_json out;
  out["format"] = "loadline.check/1";
  out["model"] = check.model;
  out["verdict"] = CheckVerdict(check);
  out["supported"] = !absl::IsUnimplemented(check.status);
  out["trains"] = check.status.ok();
  out["as_exported"] = check.AsExported();
  out["error"] = std::string(check.status.message());
  out["unsupported"] = nlohmann::ordered_json::array();
  for (const models::UnsupportedOperator& op : check.unsupported) {
    out["unsupported"].push_back(
        {{"operator", op.name}, {"why", op.why}, {"nodes", op.nodes}});
  }
  out["open_axes"] = nlohmann::ordered_json::array();
  for (const OpenAxis& axis : check.open_axes) {
    nlohmann::ordered_json entry = {{"input", axis.input},
                                    {"name", axis.name},
                                    {"flag", axis.flag},
                                    {"set", axis.size != 0}};
    if (axis.axis >= 0) entry["axis"] = axis.axis;
    if (axis.axis >= 0 && axis.size != 0) entry["size"] = axis.size;
    out["open_axes"].push_back(std::move(entry));
  }
  out["warnings"] = check.warnings;
  if (!check.imported) return out;
  const models::TrainingForms& forms = check.forms;
  out["inputs"] = check.inputs;
  out["not_read"] = check.not_read;
  out["nodes"] = check.nodes;
  out["operators"] = check.operators;
  out["batch_normalization"] = {{"training", forms.batch_norms},
                                {"restored", forms.batch_norms_restored},
                                {"fixed", forms.batch_norms_fixed}};
  out["dropout"] = {{"training", forms.dropouts},
                    {"restored", forms.dropouts_restored},
                    {"off", forms.dropouts_off}};
  out["trained_parameters"] = check.parameters;
  out["trained_elements"] = check.parameter_elements;
  out["trained_bytes"] = check.parameter_bytes;
  out["tensors"] = nlohmann::ordered_json::array();
  for (const models::InitializerRole& role : check.roles) {
    out["tensors"].push_back(
        {{"name", role.name}, {"trained", role.trained}, {"why", role.why}});
  }
  out["without_gradient"] = check.without_gradient;
  out["loss"] = {{"description", check.loss},
                 {"fits", check.loss_status.ok()},
                 {"error", std::string(check.loss_status.message())}};
  if (check.gradients.empty()) return out;
  out["gradients"] = nlohmann::ordered_json::array();
  for (const reference::GradientCheck& of_op : check.gradients) {
    out["gradients"].push_back({{"operator", of_op.op},
                                {"nodes", of_op.nodes},
                                {"checked", of_op.checked},
                                {"shortened", of_op.smaller},
                                {"left_out", of_op.skipped},
                                {"why_left_out", of_op.why},
                                {"wrong", of_op.Wrong()},
                                {"relative_error", of_op.worst},
                                {"node", of_op.node},
                                {"types", of_op.types}});
  }
  return out;
}

}  // namespace loadline::tools
