// Attributes of a node: small, typed, ordered by name.
#ifndef LOADLINE_MODELS_ATTRIBUTES_H_
#define LOADLINE_MODELS_ATTRIBUTES_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::models {

using Ints = std::vector<int64_t>;
using Attribute = std::variant<int64_t, double, std::string, Ints>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> l)
      : map_(l) {}

  void Set(absl::string_view name, Attribute value);
  void Erase(absl::string_view name);
  bool Has(absl::string_view name) const;

  // The value, or `fallback` if absent. A value of another kind is a bug in our
  // code: the import and the text reader compare kinds with the operator table
  // before a Graph exists.
  int64_t Int(absl::string_view name, int64_t fallback) const;
  // An integer other than 0; false if absent.
  bool Flag(absl::string_view name) const { return Int(name, 0) != 0; }
  double Float(absl::string_view name, double fallback) const;
  std::string String(absl::string_view name, absl::string_view fallback) const;
  Ints IntList(absl::string_view name, const Ints& fallback = {}) const;

  const std::map<std::string, Attribute>& map() const { return map_; }
  bool operator==(const Attributes& o) const { return map_ == o.map_; }

 private:
  std::map<std::string, Attribute> map_;
};

// "1"; "0.5" (always with a point, an exponent or a name, to differ from an
// integer); "\"tanh\"" (escaped); "[1, 2]".
std::string AttributeToText(const Attribute& attribute);
// The shortest decimal that reads back as the same double, in the same form.
std::string FloatToText(double value);

}  // namespace loadline::models

#endif  // LOADLINE_MODELS_ATTRIBUTES_H_
