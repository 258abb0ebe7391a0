// Tested in tests/models/onnx_rules_test.cc and
// tests/models/onnx_import_test.cc.
#include "models/onnx/inline_operators.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/onnx/erase_if.h"
#include "models/onnx/node_attributes.h"
#include "models/onnx/supported.h"
#include "onnx/defs/schema.h"
#include "onnx/inliner/inliner.h"

namespace loadline::models::onnx_internal {
namespace {

int OpsetOf(const onnx::ModelProto& proto, absl::string_view domain) {
  for (const auto& import : proto.opset_import()) {
    if (import.domain() == domain ||
        (domain.empty() && import.domain() == "ai.onnx")) {
      return static_cast<int>(
          std::clamp<int64_t>(import.version(), 0, 1 << 20));
    }
  }
  return 0;
}

// Writes defaults out, because a function's body reads attributes of its call.
void WriteDefaults(const onnx::ModelProto& model, onnx::NodeProto* node) {
  const std::string& domain = node->domain();
  const auto* schema = onnx::OpSchemaRegistry::Schema(
      node->op_type(), OpsetOf(model, domain), domain);
  if (schema == nullptr) return;
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.default_value.name().empty() ||
        FindAttribute(*node, name) != nullptr) {
      continue;
    }
    *node->add_attribute() = attribute.default_value;
  }
}

using Functions = std::map<std::string, const onnx::FunctionProto*>;

std::string FunctionKey(const std::string& domain, const std::string& name,
                        const std::string& overload) {
  return absl::StrCat(domain, "\n", name, "\n", overload);
}

// The attributes that a call leaves to the function: the inliner takes those of
// operators in the body instead.
void WriteFunctionDefaults(const Functions& functions, onnx::NodeProto* node) {
  for (auto& attribute : *node->mutable_attribute()) {
    if (attribute.has_g()) {
      for (auto& inner : *attribute.mutable_g()->mutable_node()) {
        WriteFunctionDefaults(functions, &inner);
      }
    }
    for (auto& graph : *attribute.mutable_graphs()) {
      for (auto& inner : *graph.mutable_node()) {
        WriteFunctionDefaults(functions, &inner);
      }
    }
  }
  const auto called = functions.find(
      FunctionKey(node->domain(), node->op_type(), node->overload()));
  if (called == functions.end()) return;
  for (const auto& fallback : called->second->attribute_proto()) {
    if (FindAttribute(*node, fallback.name()) == nullptr) {
      *node->add_attribute() = fallback;
    }
  }
}

// The bodies of some functions depend on their inputs' types, which the inliner
// does not look up at initializers.
void DeclareInitializers(onnx::GraphProto* graph) {
  std::set<std::string> declared;
  for (const auto& info : graph->value_info()) declared.insert(info.name());
  for (const auto& tensor : graph->initializer()) {
    if (!declared.insert(tensor.name()).second) continue;
    onnx::ValueInfoProto* info = graph->add_value_info();
    info->set_name(tensor.name());
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(tensor.data_type());
    type->mutable_shape();
    for (const int64_t dim : tensor.dims()) {
      type->mutable_shape()->add_dim()->set_dim_value(dim);
    }
  }
}

// The inliner looks up the types of inputs that are left out, too.
void DeclareLeftOut(onnx::GraphProto* graph) {
  onnx::ValueInfoProto* info = graph->add_value_info();
  info->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
}

void ForgetLeftOut(onnx::GraphProto* graph) {
  EraseIf(graph->mutable_value_info(),
          [](const auto* info) { return info->name().empty(); });
}

}  // namespace

int DefaultOpset(const onnx::ModelProto& proto) { return OpsetOf(proto, ""); }

bool ContainsOperator(const onnx::ModelProto& proto,
                      const std::vector<std::string>& operators) {
  for (const auto& node : proto.graph().node()) {
    for (const std::string& name : operators) {
      if (QualifiedName(node) == name) return true;
    }
  }
  return false;
}

void InlineOperators(const std::vector<std::string>& operators,
                     onnx::ModelProto* proto) {
  DeclareInitializers(proto->mutable_graph());
  DeclareLeftOut(proto->mutable_graph());
  const std::set<std::string> names(operators.begin(), operators.end());
  for (auto& node : *proto->mutable_graph()->mutable_node()) {
    if (names.count(QualifiedName(node)) > 0) WriteDefaults(*proto, &node);
  }
  onnx::inliner::FunctionIdVector ids;
  for (const std::string& name : operators) {
    const size_t colons = name.find("::");
    if (colons == std::string::npos) {
      ids.emplace_back("", name);
    } else {
      ids.emplace_back(name.substr(0, colons), name.substr(colons + 2));
    }
  }
  const auto set = onnx::inliner::FunctionIdSet::Create(std::move(ids));
  onnx::inliner::InlineSelectedFunctions(*proto, *set, nullptr);
  ForgetLeftOut(proto->mutable_graph());
}

void WriteFunctionDefaults(onnx::ModelProto* model) {
  Functions functions;
  for (const auto& function : model->functions()) {
    functions[FunctionKey(function.domain(), function.name(),
                          function.overload())] = &function;
  }
  for (auto& function : *model->mutable_functions()) {
    for (auto& node : *function.mutable_node()) {
      WriteFunctionDefaults(functions, &node);
    }
  }
  for (auto& node : *model->mutable_graph()->mutable_node()) {
    WriteFunctionDefaults(functions, &node);
  }
}

}  // namespace loadline::models::onnx_internal
