// Tested by tests/tools/pipeline/mask_update_test.cc.
#include "tools/pipeline/persistent_values.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "models/ops/state_blocks.h"
#include "planner/base/status_macros.h"
#include "tools/pipeline/state_numbers.h"

namespace loadline::tools {
namespace {

absl::Status NoSuchValue(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no persistent value '", name, "'"));
}

absl::Span<std::byte> BytesOf(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

absl::Span<const std::byte> BytesOf(absl::Span<const float> values) {
  return {reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

}  // namespace

absl::Status PersistentValues::Clear(const std::string& name, int64_t elements,
                                     absl::FunctionRef<bool(int64_t)> clear) {
  LOADLINE_ASSIGN_OR_RETURN(std::vector<float> contents, Read(name));
  for (int64_t e = 0; e < elements; ++e) {
    if (clear(e)) contents[static_cast<size_t>(e)] = 0;
  }
  return Write(name, contents);
}

bool ProgramValues::Has(const std::string& name) const {
  return program_.graph().Find(name).has_value();
}

absl::StatusOr<std::vector<float>> ProgramValues::Read(
    const std::string& name) {
  const std::optional<models::ValueId> id = program_.graph().Find(name);
  if (!id.has_value()) return NoSuchValue(name);
  const models::TensorType& type = program_.graph().value(*id).type;
  if (type.dtype != models::DType::kF32) {
    return absl::InternalError(
        absl::StrCat("'", name, "' is ", type.ToString(), ", not f32"));
  }
  std::vector<float> contents(static_cast<size_t>(type.elements()));
  LOADLINE_RETURN_IF_ERROR(program_.ReadPersistent(name, BytesOf(contents)));
  return contents;
}

absl::Status ProgramValues::Write(const std::string& name,
                                  absl::Span<const float> contents) {
  return program_.WritePersistent(name, BytesOf(contents));
}

absl::Status ProgramValues::Clear(const std::string& name, int64_t elements,
                                  absl::FunctionRef<bool(int64_t)> clear) {
  const std::optional<models::ValueId> id = program_.graph().Find(name);
  if (!id.has_value()) return NoSuchValue(name);
  const models::TensorType& type = program_.graph().value(*id).type;
  if (!models::IsStateBlocks(type)) {
    return PersistentValues::Clear(name, elements, clear);
  }
  std::vector<std::byte> blocks(static_cast<size_t>(type.bytes()));
  LOADLINE_RETURN_IF_ERROR(
      program_.ReadPersistent(name, absl::MakeSpan(blocks)));
  ClearNumbers(elements, clear, absl::MakeSpan(blocks));
  return program_.WritePersistent(name, blocks);
}

bool StateValues::Has(const std::string& name) const {
  return state_.count(name) > 0;
}

absl::StatusOr<std::vector<float>> StateValues::Read(const std::string& name) {
  const auto found = state_.find(name);
  if (found == state_.end()) return NoSuchValue(name);
  std::vector<float> contents(found->second.size() / sizeof(float));
  std::memcpy(contents.data(), found->second.data(),
              contents.size() * sizeof(float));
  return contents;
}

absl::Status StateValues::Write(const std::string& name,
                                absl::Span<const float> contents) {
  const auto found = state_.find(name);
  if (found == state_.end()) return NoSuchValue(name);
  const auto bytes = BytesOf(contents);
  found->second.assign(bytes.begin(), bytes.end());
  return absl::OkStatus();
}

}  // namespace loadline::tools
