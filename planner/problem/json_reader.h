// Strict reading of our JSON formats: callers request every field by name and
// type; a field that nobody requested is an error (except under the key
// `extra`). Internal to the planner's readers.
//
// Example:
//   LOADLINE_ASSIGN_OR_RETURN(Json document, ParseJson(text));
//   ObjectReader reader(document, "machine");
//   machine.name = reader.String("name");
//   machine.device_bytes = reader.Int("device_bytes");
//   LOADLINE_RETURN_IF_ERROR(reader.Finish());  // the first error, if any
#ifndef LOADLINE_PLANNER_PROBLEM_JSON_READER_H_
#define LOADLINE_PLANNER_PROBLEM_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace loadline::planner {

// A parsed JSON value. Integers are exact; one outside int64 becomes a
// HugeInteger, which every reader refuses.
struct Json;
struct HugeInteger {
  std::string text;
};
using JsonArray = std::vector<Json>;
using JsonObject = std::vector<std::pair<std::string, Json>>;  // file order
struct Json {
  std::variant<std::nullptr_t, bool, int64_t, double, std::string, HugeInteger,
               JsonArray, JsonObject>
      value = nullptr;

  bool IsNull() const { return std::holds_alternative<std::nullptr_t>(value); }
};

// Parses one JSON document. InvalidArgument, with the byte position, on bad
// syntax, invalid UTF-8, a key given twice in one object, more than 64 levels.
absl::StatusOr<Json> ParseJson(absl::string_view text);

// Where an object stands, for messages: "nodes[3] (id 7)". Cheap to make: no
// string is built until there is an error.
struct JsonPlace {
  absl::string_view name;  // of the object, or of the list that holds it
  int64_t position = -1;   // in the list; -1: not in a list
};

// Reads one object. The first error is kept; after it every getter returns its
// default (zero, empty), so a caller reads all fields and calls Finish() once.
class ObjectReader {
 public:
  ObjectReader(const Json& json, JsonPlace place);

  // Required fields. Integers and numbers must not be negative.
  int64_t Int(absl::string_view field);
  double Number(absl::string_view field);  // finite
  std::string String(absl::string_view field);
  const JsonArray& List(absl::string_view field);
  const Json& Any(absl::string_view field);  // null where missing

  // Optional fields.
  int64_t IntOr(absl::string_view field, int64_t fallback);
  double NumberOr(absl::string_view field, double fallback);
  bool BoolOr(absl::string_view field, bool fallback);
  std::string StringOr(absl::string_view field, absl::string_view fallback);
  const JsonArray& ListOr(absl::string_view field);  // empty where missing
  const Json* Find(absl::string_view field);         // null where missing

  // The required field `id`; messages name it from here on.
  int64_t Id();

  // The field holds integers that are keys of `ids`; returns the mapped values.
  template <typename T>
  std::vector<T> References(absl::string_view field,
                            const absl::flat_hash_map<int64_t, T>& ids);
  // As above, for a field that is one integer. `none` where it failed.
  template <typename T>
  T Reference(absl::string_view field,
              const absl::flat_hash_map<int64_t, T>& ids, T none);

  // Records an error of the caller's own about `field`.
  void Fail(absl::string_view field, absl::string_view what);

  bool ok() const { return status_.ok(); }
  // The first error; without one, an error if a field was never requested.
  absl::Status Finish();

 private:
  const Json* Require(absl::string_view field);
  int64_t IntFrom(const Json& json, absl::string_view field);
  double NumberFrom(const Json& json, absl::string_view field);
  std::string StringFrom(const Json& json, absl::string_view field);
  const JsonArray& ListFrom(const Json& json, absl::string_view field);
  std::string PlaceName() const;

  const JsonObject* object_;
  JsonPlace place_;
  int64_t id_ = -1;
  std::vector<bool> read_;
  absl::Status status_;
};

// Records `id` -> `value`; a repeated id fails the reader.
template <typename T>
void AddId(ObjectReader& reader, int64_t id, T value,
           absl::flat_hash_map<int64_t, T>& ids) {
  if (reader.ok() && !ids.emplace(id, value).second) {
    reader.Fail("id", "was given to an earlier entry too");
  }
}

template <typename T>
std::vector<T> ObjectReader::References(
    absl::string_view field, const absl::flat_hash_map<int64_t, T>& ids) {
  std::vector<T> result;
  const JsonArray& list = List(field);
  result.reserve(list.size());
  for (const Json& json : list) {
    const int64_t id = IntFrom(json, field);
    if (!ok()) return result;
    const auto found = ids.find(id);
    if (found == ids.end()) {
      Fail(field, "refers to id " + std::to_string(id) + ", which is nothing");
      return result;
    }
    result.push_back(found->second);
  }
  return result;
}

template <typename T>
T ObjectReader::Reference(absl::string_view field,
                          const absl::flat_hash_map<int64_t, T>& ids, T none) {
  const int64_t id = Int(field);
  if (!ok()) return none;
  const auto found = ids.find(id);
  if (found != ids.end()) return found->second;
  Fail(field, "refers to id " + std::to_string(id) + ", which is nothing");
  return none;
}

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_JSON_READER_H_
