// Writes the canonical form of our JSON formats: no spaces, keys in the order
// of the calls, numbers and strings exactly as docs/formats.md says ("Canonical
// bytes"). Internal to the planner's writers.
//
// Example:
//   JsonWriter json;
//   json.BeginObject().Key("id").Int(3).Key("name").String("conv").EndObject();
//   json.Take();  // {"id":3,"name":"conv"}
#ifndef LOADLINE_PLANNER_PROBLEM_JSON_WRITER_H_
#define LOADLINE_PLANNER_PROBLEM_JSON_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace loadline::planner {

class JsonWriter {
 public:
  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginList() { return Open('['); }
  JsonWriter& EndList() { return Close(']'); }
  JsonWriter& Key(absl::string_view name);
  JsonWriter& Int(int64_t value);
  // Shortest digits that read back as the same double, laid out as Python's
  // repr does; a whole number below 2^53 is written as an integer.
  JsonWriter& Number(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& String(absl::string_view value);
  // A line break before the next element, for files that people read as well.
  JsonWriter& Line();

  std::string Take() { return std::move(text_); }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();
  void AppendString(absl::string_view value);

  std::string text_;
  bool need_comma_ = false;
  bool need_line_ = false;
};

}  // namespace loadline::planner

#endif  // LOADLINE_PLANNER_PROBLEM_JSON_WRITER_H_
