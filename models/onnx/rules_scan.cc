// The rule for Scan, a loop over positions of its inputs: the body is imported
// once for each. Tested in tests/models/onnx_control_flow_test.cc.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/onnx/importer.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/shape_math.h"
#include "models/onnx/unrolled_body.h"
#include "planner/base/status_macros.h"

namespace loadline::models::onnx_internal {
namespace {

class ScanUnroller {
 public:
  ScanUnroller(Importer& importer, const onnx::NodeProto& node,
               const onnx::GraphProto& body)
      : importer_(importer),
        node_(node),
        body_(body),
        scanned_(static_cast<int>(IntAttribute(node, "num_scan_inputs", 0))),
        states_(node.input_size() - scanned_) {}

  absl::Status Run() {
    if (scanned_ < 1 || states_ < 0 || node_.output_size() < states_ ||
        body_.output_size() != node_.output_size()) {
      return absl::InvalidArgumentError("its body has other inputs or outputs");
    }
    for (int i = 0; i < node_.input_size(); ++i) {
      if (!importer_.Has(node_, i) || importer_.Input(node_, i).is_sequence) {
        return absl::InvalidArgumentError(
            absl::StrCat("input ", i, " is not a tensor"));
      }
    }
    for (int i = 0; i < states_; ++i) {
      carried_.push_back(importer_.Input(node_, i));
    }
    LOADLINE_RETURN_IF_ERROR(ReadSteps());
    if (steps_ < 1 || steps_ > kMostBodySteps) {
      importer_.Unsupported(node_, absl::StrCat("of ", steps_, " steps"));
      return absl::OkStatus();
    }
    LOADLINE_RETURN_IF_ERROR(TakeApart());
    gathered_.resize(node_.output_size() - states_);
    for (int64_t step = 0; step < steps_; ++step) {
      LOADLINE_RETURN_IF_ERROR(Step(step));
    }
    return Finish();
  }

 private:
  // Of input or output `i`, counting the scanned or gathered ones; 0 if the
  // attribute is not there.
  absl::StatusOr<int64_t> At(const char* attribute, int i, int count) const {
    const Ints numbers = IntsAttribute(node_, attribute);
    if (numbers.empty()) return 0;
    if (std::ssize(numbers) != count) {
      return absl::InvalidArgumentError(
          absl::StrCat(attribute, " does not have ", count, " numbers"));
    }
    return numbers[static_cast<size_t>(i)];
  }

  absl::StatusOr<int64_t> InputAxis(int i) const {
    LOADLINE_ASSIGN_OR_RETURN(const int64_t axis,
                              At("scan_input_axes", i, scanned_));
    return NormalizeAxis(axis, importer_.Type(node_, states_ + i).rank());
  }

  absl::Status ReadSteps() {
    for (int i = 0; i < scanned_; ++i) {
      LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, InputAxis(i));
      const int64_t size =
          importer_.Type(node_, states_ + i).dims[static_cast<size_t>(axis)];
      if (i > 0 && size != steps_) {
        return absl::InvalidArgumentError(absl::StrCat(
            "its inputs have ", steps_, " and ", size, " positions"));
      }
      steps_ = size;
    }
    return absl::OkStatus();
  }

  absl::Status TakeApart() {
    for (int i = 0; i < scanned_; ++i) {
      LOADLINE_ASSIGN_OR_RETURN(const int64_t axis, InputAxis(i));
      LOADLINE_ASSIGN_OR_RETURN(const int64_t backwards,
                                At("scan_input_directions", i, scanned_));
      LOADLINE_ASSIGN_OR_RETURN(
          std::vector<Binding> parts,
          UnstackBinding(importer_, node_, importer_.Input(node_, states_ + i),
                         axis, steps_));
      if (backwards != 0) std::reverse(parts.begin(), parts.end());
      parts_.push_back(std::move(parts));
    }
    return absl::OkStatus();
  }

  absl::Status Step(int64_t step) {
    std::vector<Binding> inputs = std::move(carried_);
    for (std::vector<Binding>& parts : parts_) {
      inputs.push_back(std::move(parts[static_cast<size_t>(step)]));
    }
    LOADLINE_ASSIGN_OR_RETURN(std::vector<Binding> outputs,
                              importer_.VisitBody(body_, std::move(inputs)));
    carried_.assign(outputs.begin(), outputs.begin() + states_);
    for (size_t i = 0; i < gathered_.size(); ++i) {
      gathered_[i].push_back(
          std::move(outputs[static_cast<size_t>(states_) + i]));
    }
    return absl::OkStatus();
  }

  absl::Status Finish() {
    for (int i = 0; i < states_; ++i) {
      importer_.Bind(node_.output(i), std::move(carried_[i]));
    }
    const int count = static_cast<int>(gathered_.size());
    for (int i = 0; i < count; ++i) {
      if (node_.output(states_ + i).empty()) continue;
      LOADLINE_ASSIGN_OR_RETURN(const int64_t axis,
                                At("scan_output_axes", i, count));
      LOADLINE_ASSIGN_OR_RETURN(const int64_t backwards,
                                At("scan_output_directions", i, count));
      std::vector<Binding> parts = std::move(gathered_[i]);
      if (backwards != 0) std::reverse(parts.begin(), parts.end());
      LOADLINE_ASSIGN_OR_RETURN(
          Binding all, StackBindings(importer_, node_, std::move(parts), axis));
      importer_.Bind(node_.output(states_ + i), std::move(all));
    }
    return absl::OkStatus();
  }

  Importer& importer_;
  const onnx::NodeProto& node_;
  const onnx::GraphProto& body_;
  const int scanned_, states_;  // inputs; the states come first
  int64_t steps_ = 0;
  std::vector<Binding> carried_;
  std::vector<std::vector<Binding>> parts_;     // by scanned input and step
  std::vector<std::vector<Binding>> gathered_;  // by gathered output and step
};

absl::Status Scan(Importer& importer, const onnx::NodeProto& node) {
  LOADLINE_ASSIGN_OR_RETURN(const onnx::GraphProto* body, BodyOf(node, "body"));
  return ScanUnroller(importer, node, *body).Run();
}

}  // namespace

const std::map<std::string, Rule>& ScanRules() {
  static const auto* const kRules =
      new std::map<std::string, Rule>{{"Scan", Scan}};
  return *kRules;
}

}  // namespace loadline::models::onnx_internal
