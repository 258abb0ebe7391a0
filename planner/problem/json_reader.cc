// A SAX handler for nlohmann's parser builds a small tree of our own, because
// nlohmann's tree neither keeps integers exact, nor detects repeated keys, nor
// limits the depth. Tested in tests/planner/problem/json_test.cc.
#include "planner/problem/json_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace loadline::planner {
namespace {

constexpr size_t kDepthLimit = 64;

// nlohmann's SAX interface. Returning false stops the parser.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Add(Json{nullptr}); }
  bool boolean(bool value) override { return Add(Json{value}); }
  bool number_integer(int64_t value) override { return Add(Json{value}); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return Add(Json{HugeInteger{std::to_string(value)}});
    }
    return Add(Json{static_cast<int64_t>(value)});
  }
  bool number_float(double value, const std::string& text) override {
    // The parser turns integers beyond 64 bits into doubles.
    if (text.find_first_of(".eE") == std::string::npos) {
      return Add(Json{HugeInteger{text}});
    }
    return Add(Json{value});
  }
  bool string(std::string& value) override { return Add(Json{value}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(Json{JsonObject()}); }
  bool start_array(size_t) override { return Open(Json{JsonArray()}); }
  bool key(std::string& name) override {
    std::get<JsonObject>(open_.back().value).push_back({name, Json()});
    return true;
  }
  bool end_object() override {
    return CheckKeys(std::get<JsonObject>(open_.back().value)) && Close();
  }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string what = error.what();
    const size_t end = what.find("] ");
    error_ = absl::StrCat(
        "not JSON (byte ", position,
        "): ", end == std::string::npos ? what : what.substr(end + 2));
    return false;
  }

  Json TakeRoot() { return std::move(root_); }
  const std::string& error() const { return error_; }

 private:
  bool Add(Json json) {
    if (open_.empty()) {
      root_ = std::move(json);
    } else if (auto* array = std::get_if<JsonArray>(&open_.back().value)) {
      array->push_back(std::move(json));
    } else {
      std::get<JsonObject>(open_.back().value).back().second = std::move(json);
    }
    return true;
  }

  bool Open(Json json) {
    if (open_.size() == kDepthLimit) {
      error_ = absl::StrCat("nested deeper than ", kDepthLimit, " levels");
      return false;
    }
    open_.push_back(std::move(json));
    return true;
  }

  bool Close() {
    Json closed = std::move(open_.back());
    open_.pop_back();
    return Add(std::move(closed));
  }

  bool CheckKeys(const JsonObject& object) {
    std::vector<absl::string_view> keys;
    keys.reserve(object.size());
    for (const auto& entry : object) keys.push_back(entry.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return true;
    error_ =
        absl::StrCat("field \"", *twice, "\" is given twice in one object");
    return false;
  }

  std::vector<Json> open_;  // objects and arrays that have not ended
  Json root_;
  std::string error_;
};

// Empty values that getters return references to.
const JsonArray& EmptyList() {
  static const JsonArray* empty = new JsonArray();
  return *empty;
}
const Json& NullJson() {
  static const Json* null = new Json();
  return *null;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  TreeBuilder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return absl::InvalidArgumentError(builder.error());
  }
  return builder.TakeRoot();
}

ObjectReader::ObjectReader(const Json& json, JsonPlace place)
    : object_(std::get_if<JsonObject>(&json.value)), place_(place) {
  if (object_ == nullptr) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(PlaceName(), " must be an object"));
    return;
  }
  read_.resize(object_->size());
}

std::string ObjectReader::PlaceName() const {
  std::string name(place_.name);
  if (place_.position >= 0) absl::StrAppend(&name, "[", place_.position, "]");
  if (id_ >= 0) absl::StrAppend(&name, " (id ", id_, ")");
  return name;
}

void ObjectReader::Fail(absl::string_view field, absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(PlaceName(), ": field \"", field, "\" ", what));
}

const Json* ObjectReader::Find(absl::string_view field) {
  if (!ok()) return nullptr;
  for (size_t i = 0; i < object_->size(); ++i) {
    if ((*object_)[i].first == field) {
      read_[i] = true;
      return &(*object_)[i].second;
    }
  }
  return nullptr;
}

const Json* ObjectReader::Require(absl::string_view field) {
  const Json* json = Find(field);
  if (json == nullptr) Fail(field, "is missing");
  return json;
}

int64_t ObjectReader::IntFrom(const Json& json, absl::string_view field) {
  if (const auto* huge = std::get_if<HugeInteger>(&json.value)) {
    Fail(field, absl::StrCat("does not fit 64 bits: ", huge->text));
    return 0;
  }
  const auto* value = std::get_if<int64_t>(&json.value);
  if (value == nullptr) {
    Fail(field, "must be an integer");
    return 0;
  }
  if (*value < 0) {
    Fail(field, absl::StrCat("must not be negative: ", *value));
    return 0;
  }
  return *value;
}

double ObjectReader::NumberFrom(const Json& json, absl::string_view field) {
  if (const auto* value = std::get_if<double>(&json.value)) {
    if (std::isfinite(*value) && *value >= 0) return *value;
    Fail(field, absl::StrCat("must be finite and not negative: ", *value));
    return 0;
  }
  if (!std::holds_alternative<int64_t>(json.value) &&
      !std::holds_alternative<HugeInteger>(json.value)) {
    Fail(field, "must be a number");
    return 0;
  }
  return static_cast<double>(IntFrom(json, field));
}

std::string ObjectReader::StringFrom(const Json& json,
                                     absl::string_view field) {
  const auto* value = std::get_if<std::string>(&json.value);
  if (value != nullptr) return *value;
  Fail(field, "must be a string");
  return "";
}

const JsonArray& ObjectReader::ListFrom(const Json& json,
                                        absl::string_view field) {
  const auto* value = std::get_if<JsonArray>(&json.value);
  if (value != nullptr) return *value;
  Fail(field, "must be a list");
  return EmptyList();
}

int64_t ObjectReader::Int(absl::string_view field) {
  const Json* json = Require(field);
  return json == nullptr ? 0 : IntFrom(*json, field);
}

double ObjectReader::Number(absl::string_view field) {
  const Json* json = Require(field);
  return json == nullptr ? 0 : NumberFrom(*json, field);
}

std::string ObjectReader::String(absl::string_view field) {
  const Json* json = Require(field);
  return json == nullptr ? "" : StringFrom(*json, field);
}

const JsonArray& ObjectReader::List(absl::string_view field) {
  const Json* json = Require(field);
  return json == nullptr ? EmptyList() : ListFrom(*json, field);
}

const Json& ObjectReader::Any(absl::string_view field) {
  const Json* json = Require(field);
  return json == nullptr ? NullJson() : *json;
}

int64_t ObjectReader::IntOr(absl::string_view field, int64_t fallback) {
  const Json* json = Find(field);
  return json == nullptr ? fallback : IntFrom(*json, field);
}

double ObjectReader::NumberOr(absl::string_view field, double fallback) {
  const Json* json = Find(field);
  return json == nullptr ? fallback : NumberFrom(*json, field);
}

bool ObjectReader::BoolOr(absl::string_view field, bool fallback) {
  const Json* json = Find(field);
  if (json == nullptr) return fallback;
  const auto* value = std::get_if<bool>(&json->value);
  if (value != nullptr) return *value;
  Fail(field, "must be true or false");
  return fallback;
}

std::string ObjectReader::StringOr(absl::string_view field,
                                   absl::string_view fallback) {
  const Json* json = Find(field);
  return json == nullptr ? std::string(fallback) : StringFrom(*json, field);
}

const JsonArray& ObjectReader::ListOr(absl::string_view field) {
  const Json* json = Find(field);
  return json == nullptr ? EmptyList() : ListFrom(*json, field);
}

int64_t ObjectReader::Id() {
  const int64_t id = Int("id");
  if (ok()) id_ = id;
  return id;
}

absl::Status ObjectReader::Finish() {
  if (!ok()) return status_;
  for (size_t i = 0; i < object_->size(); ++i) {
    const std::string& field = (*object_)[i].first;
    if (!read_[i] && field != "extra") {
      Fail(field, "is unknown");
      break;
    }
  }
  return status_;
}

}  // namespace loadline::planner
