// loadline.machine/1, and what both versions have in common. Tested in
// tests/planner/problem/machine_json_test.cc and problem_json_test.cc.
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/status_macros.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/machine.h"
#include "planner/problem/machine_json.h"

namespace loadline::planner {
namespace {

absl::Status BadExtra(absl::string_view key, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("machine: field \"extra.", key, "\" ", what));
}

// An object with arbitrary keys: each name maps to the result of `read`.
template <typename T, typename Read>
absl::Status ReadMap(const Json& json, absl::string_view name, Read read,
                     std::map<std::string, T>& map) {
  const auto* object = std::get_if<JsonObject>(&json.value);
  if (object == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(name, " must be an object"));
  }
  for (const auto& [key, value] : *object) {
    // One field at a time, so that a large map is not searched for each key.
    Json field{JsonObject{{key, value}}};
    ObjectReader reader(field, {name});
    map[key] = read(reader, key);
    LOADLINE_RETURN_IF_ERROR(reader.Finish());
  }
  return absl::OkStatus();
}

absl::StatusOr<Rates> ReadRates(const Json& json) {
  Rates rates;
  ObjectReader reader(json, {"machine.rates"});
  const Json& matmul = reader.Any("matmul_flop_per_s");
  rates.memory_bytes_per_s = reader.Number("memory_bytes_per_s");
  rates.launch_ns = reader.Int("launch_ns");
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  LOADLINE_RETURN_IF_ERROR(ReadMap(
      matmul, "machine.rates.matmul_flop_per_s",
      [](ObjectReader& r, const std::string& key) { return r.Number(key); },
      rates.matmul_flop_per_s));
  return rates;
}

// Unknown fields of `extra` are ignored.
absl::Status ReadExtra(const Json& extra, Machine& machine) {
  const auto* object = std::get_if<JsonObject>(&extra.value);
  if (object == nullptr) {
    return absl::InvalidArgumentError(
        "machine: field \"extra\" must be an object");
  }
  for (const auto& [key, value] : *object) {
    if (key == "algorithms") {
      LOADLINE_RETURN_IF_ERROR(
          ReadAlgorithms(value, "machine.extra.algorithms", machine));
    } else if (key == "switch_ns") {
      const auto* ns = std::get_if<int64_t>(&value.value);
      if (ns == nullptr || *ns < 0) {
        return BadExtra(key, "must be an integer, 0 or more");
      }
      machine.copy_overhead_ns = *ns;
    } else if (key == "provisional") {
      const auto* why = std::get_if<std::string>(&value.value);
      if (why == nullptr) return BadExtra(key, "must be a string");
      machine.provisional = *why;
    } else if (key == "copies_stop_compute" || key == "nominal") {
      const bool* is = std::get_if<bool>(&value.value);
      if (is == nullptr) return BadExtra(key, "must be true or false");
      (key == "nominal" ? machine.nominal : machine.copies_exclude_compute) =
          *is;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadAlgorithms(const Json& json, absl::string_view place,
                            Machine& machine) {
  return ReadMap(
      json, place,
      [](ObjectReader& r, const std::string& key) { return r.String(key); },
      machine.algorithms);
}

absl::Status ReadOps(const Json* ops, const Json* rates, Machine& machine) {
  if (ops != nullptr) {
    LOADLINE_RETURN_IF_ERROR(ReadMap(
        *ops, "machine.ops",
        [](ObjectReader& r, const std::string& key) { return r.Int(key); },
        machine.ops));
  }
  if (rates != nullptr) {
    LOADLINE_ASSIGN_OR_RETURN(machine.rates, ReadRates(*rates));
  }
  return absl::OkStatus();
}

void WriteOps(const Machine& machine, JsonWriter& json) {
  if (!machine.ops.empty()) {
    json.Key("ops").BeginObject();
    for (const auto& [key, ns] : machine.ops) json.Key(key).Int(ns);
    json.EndObject();
  }
  if (machine.rates.has_value()) {
    json.Key("rates").BeginObject().Key("matmul_flop_per_s").BeginObject();
    for (const auto& [type, rate] : machine.rates->matmul_flop_per_s) {
      json.Key(type).Number(rate);
    }
    json.EndObject();
    json.Key("memory_bytes_per_s").Number(machine.rates->memory_bytes_per_s);
    json.Key("launch_ns").Int(machine.rates->launch_ns).EndObject();
  }
}

absl::StatusOr<Machine> ReadMachine1(const Json& json) {
  Machine machine;
  machine.format_version = 1;
  ObjectReader reader(json, {"machine"});
  reader.Any("format");
  machine.name = reader.String("name");
  machine.device_bytes = reader.Int("device_bytes");
  machine.reserved_bytes = reader.Int("reserved_bytes");
  int64_t latency_ns = 0;
  if (reader.Find("d2h_bytes_per_s") != nullptr ||
      reader.Find("h2d_bytes_per_s") != nullptr) {
    machine.d2h.bytes_per_s = reader.Number("d2h_bytes_per_s");
    machine.h2d.bytes_per_s = reader.Number("h2d_bytes_per_s");
    latency_ns = reader.Int("copy_latency_ns");
    machine.d2h_h2d_factor = reader.Number("bidirectional");
    machine.host_bytes = reader.Int("host_bytes");
  } else {
    latency_ns = reader.IntOr("copy_latency_ns", 0);
    machine.d2h_h2d_factor = reader.NumberOr("bidirectional", 1.0);
    machine.host_bytes = reader.IntOr("host_bytes", 0);
  }
  machine.d2h.latency_ns = machine.h2d.latency_ns = latency_ns;
  const Json* ops = reader.Find("ops");
  const Json* rates = reader.Find("rates");
  const Json* extra = reader.Find("extra");
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  if (extra != nullptr) LOADLINE_RETURN_IF_ERROR(ReadExtra(*extra, machine));
  LOADLINE_RETURN_IF_ERROR(ReadOps(ops, rates, machine));
  return machine;
}

bool FitsMachine1(const Machine& machine) {
  return machine.d2h.latency_ns == machine.h2d.latency_ns &&
         machine.disk_bytes == 0 && machine.write.bytes_per_s == 0 &&
         machine.read.bytes_per_s == 0 && machine.write_read_factor == 1;
}

void WriteMachine1(const Machine& machine, JsonWriter& json) {
  json.BeginObject().Key("format").String("loadline.machine/1");
  json.Key("name").String(machine.name);
  json.Key("device_bytes").Int(machine.device_bytes);
  json.Key("reserved_bytes").Int(machine.reserved_bytes);
  json.Key("d2h_bytes_per_s").Number(machine.d2h.bytes_per_s);
  json.Key("h2d_bytes_per_s").Number(machine.h2d.bytes_per_s);
  json.Key("copy_latency_ns").Int(machine.d2h.latency_ns);
  json.Key("bidirectional").Number(machine.d2h_h2d_factor);
  json.Key("host_bytes").Int(machine.host_bytes);
  WriteOps(machine, json);
  json.EndObject();
}

}  // namespace loadline::planner
