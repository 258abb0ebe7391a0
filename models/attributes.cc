// Attributes of a node and their text. Tested in tests/models/text_test.cc.
#include "models/attributes.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/check.h"

namespace loadline::models {
namespace {

// The value of kind T named `name`, or null if absent.
template <typename T>
const T* Get(const std::map<std::string, Attribute>& map,
             absl::string_view name) {
  const auto it = map.find(std::string(name));
  if (it == map.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  LOADLINE_CHECK(value != nullptr);
  return value;
}

}  // namespace

void Attributes::Set(absl::string_view name, Attribute value) {
  map_[std::string(name)] = std::move(value);
}

void Attributes::Erase(absl::string_view name) {
  map_.erase(std::string(name));
}

bool Attributes::Has(absl::string_view name) const {
  return map_.count(std::string(name)) > 0;
}

int64_t Attributes::Int(absl::string_view name, int64_t fallback) const {
  const int64_t* value = Get<int64_t>(map_, name);
  return value == nullptr ? fallback : *value;
}

double Attributes::Float(absl::string_view name, double fallback) const {
  const double* value = Get<double>(map_, name);
  return value == nullptr ? fallback : *value;
}

std::string Attributes::String(absl::string_view name,
                               absl::string_view fallback) const {
  const std::string* value = Get<std::string>(map_, name);
  return value == nullptr ? std::string(fallback) : *value;
}

Ints Attributes::IntList(absl::string_view name, const Ints& fallback) const {
  const Ints* value = Get<Ints>(map_, name);
  return value == nullptr ? fallback : *value;
}

std::string FloatToText(double value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  // 'e' marks exponents, 'n' inf and nan.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string AttributeToText(const Attribute& attribute) {
  if (const int64_t* i = std::get_if<int64_t>(&attribute)) {
    return absl::StrCat(*i);
  }
  if (const double* f = std::get_if<double>(&attribute)) {
    return FloatToText(*f);
  }
  if (const std::string* s = std::get_if<std::string>(&attribute)) {
    return absl::StrCat("\"", absl::CEscape(*s), "\"");
  }
  return absl::StrCat("[", absl::StrJoin(std::get<Ints>(attribute), ", "), "]");
}

}  // namespace loadline::models
