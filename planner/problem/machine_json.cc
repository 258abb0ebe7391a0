// loadline.machine/1, field by field. Tested in
// tests/planner/problem/json_test.cc and
// problem_json_test.cc.
#include "planner/problem/machine_json.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "planner/base/status_macros.h"
#include "planner/problem/json_reader.h"
#include "planner/problem/json_writer.h"
#include "planner/problem/machine.h"

namespace loadline::planner {
namespace {

constexpr char kFormat[] = "loadline.machine/1";
constexpr char kCopiesStopCompute[] = "copies_stop_compute";
constexpr char kAlgorithms[] = "algorithms";
constexpr char kSwitchNs[] = "switch_ns";
constexpr char kNominal[] = "nominal";
constexpr char kProvisional[] = "provisional";

absl::Status BadField(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("machine: field \"", field, "\" ", what));
}

absl::Status CheckRate(absl::string_view field, double rate) {
  // Below one byte per second, or above every real link: a mistake in the unit.
  if (rate == 0 || (rate >= 1 && rate <= 1e18)) return absl::OkStatus();
  return BadField(field, "must be 0 or from 1 to 1e18 bytes per second");
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
  if (object == nullptr) return BadField("extra", "must be an object");
  for (const auto& [key, value] : *object) {
    if (key == kAlgorithms) {
      LOADLINE_RETURN_IF_ERROR(ReadMap(
          value, "machine.extra.algorithms",
          [](ObjectReader& r, const std::string& name) {
            return r.String(name);
          },
          machine.algorithms));
    }
    if (key == kSwitchNs) {
      const auto* ns = std::get_if<int64_t>(&value.value);
      if (ns == nullptr || *ns < 0) {
        return BadField("extra.switch_ns", "must be an integer, 0 or more");
      }
      machine.switch_ns = *ns;
    }
    if (key == kProvisional) {
      const auto* why = std::get_if<std::string>(&value.value);
      if (why == nullptr) {
        return BadField("extra.provisional", "must be a string");
      }
      machine.provisional = *why;
    }
    if (key != kCopiesStopCompute && key != kNominal) continue;
    const bool* is = std::get_if<bool>(&value.value);
    if (is == nullptr) {
      return BadField(absl::StrCat("extra.", key), "must be true or false");
    }
    (key == kNominal ? machine.nominal : machine.copies_stop_compute) = *is;
  }
  return absl::OkStatus();
}

void WriteExtra(const Machine& machine, JsonWriter& json) {
  if (!machine.copies_stop_compute && machine.algorithms.empty() &&
      machine.switch_ns == 0 && !machine.nominal &&
      machine.provisional.empty()) {
    return;
  }
  json.Key("extra").BeginObject();
  if (machine.copies_stop_compute) json.Key(kCopiesStopCompute).Bool(true);
  if (machine.switch_ns > 0) json.Key(kSwitchNs).Int(machine.switch_ns);
  if (machine.nominal) json.Key(kNominal).Bool(true);
  if (!machine.provisional.empty()) {
    json.Key(kProvisional).String(machine.provisional);
  }
  if (!machine.algorithms.empty()) {
    json.Key(kAlgorithms).BeginObject();
    for (const auto& [key, name] : machine.algorithms) {
      json.Key(key).String(name);
    }
    json.EndObject();
  }
  json.EndObject();
}

}  // namespace

absl::Status ValidateMachine(const Machine& machine) {
  if (machine.device_bytes < 0) {
    return BadField("device_bytes", "must not be negative");
  }
  if (machine.reserved_bytes < 0) {
    return BadField("reserved_bytes", "must not be negative");
  }
  if (machine.host_bytes < 0) {
    return BadField("host_bytes", "must not be negative");
  }
  if (machine.copy_latency_ns < 0) {
    return BadField("copy_latency_ns", "must not be negative");
  }
  LOADLINE_RETURN_IF_ERROR(
      CheckRate("d2h_bytes_per_s", machine.d2h_bytes_per_s));
  LOADLINE_RETURN_IF_ERROR(
      CheckRate("h2d_bytes_per_s", machine.h2d_bytes_per_s));
  if (!(machine.bidirectional >= 0.001 && machine.bidirectional <= 1)) {
    return BadField("bidirectional", "must be from 0.001 to 1");
  }
  return absl::OkStatus();
}

absl::StatusOr<Machine> ReadMachine(const Json& json) {
  Machine machine;
  ObjectReader reader(json, {"machine"});
  if (reader.String("format") != kFormat) {
    reader.Fail("format", absl::StrCat("must be \"", kFormat, "\""));
  }
  machine.name = reader.String("name");
  machine.device_bytes = reader.Int("device_bytes");
  machine.reserved_bytes = reader.Int("reserved_bytes");
  const bool copies = reader.Find("d2h_bytes_per_s") != nullptr ||
                      reader.Find("h2d_bytes_per_s") != nullptr;
  if (copies) {
    machine.d2h_bytes_per_s = reader.Number("d2h_bytes_per_s");
    machine.h2d_bytes_per_s = reader.Number("h2d_bytes_per_s");
    machine.copy_latency_ns = reader.Int("copy_latency_ns");
    machine.bidirectional = reader.Number("bidirectional");
    machine.host_bytes = reader.Int("host_bytes");
  } else {
    machine.copy_latency_ns = reader.IntOr("copy_latency_ns", 0);
    machine.bidirectional = reader.NumberOr("bidirectional", 1.0);
    machine.host_bytes = reader.IntOr("host_bytes", 0);
  }
  const Json* ops = reader.Find("ops");
  const Json* rates = reader.Find("rates");
  const Json* extra = reader.Find("extra");
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  if (extra != nullptr) {
    LOADLINE_RETURN_IF_ERROR(ReadExtra(*extra, machine));
  }
  if (ops != nullptr) {
    LOADLINE_RETURN_IF_ERROR(ReadMap(
        *ops, "machine.ops",
        [](ObjectReader& r, const std::string& key) { return r.Int(key); },
        machine.ops));
  }
  if (rates != nullptr) {
    LOADLINE_ASSIGN_OR_RETURN(machine.rates, ReadRates(*rates));
  }
  LOADLINE_RETURN_IF_ERROR(ValidateMachine(machine));
  return machine;
}

void WriteMachine(const Machine& machine, Extra extra, JsonWriter& json) {
  json.BeginObject().Key("format").String(kFormat);
  json.Key("name").String(machine.name);
  json.Key("device_bytes").Int(machine.device_bytes);
  json.Key("reserved_bytes").Int(machine.reserved_bytes);
  json.Key("d2h_bytes_per_s").Number(machine.d2h_bytes_per_s);
  json.Key("h2d_bytes_per_s").Number(machine.h2d_bytes_per_s);
  json.Key("copy_latency_ns").Int(machine.copy_latency_ns);
  json.Key("bidirectional").Number(machine.bidirectional);
  json.Key("host_bytes").Int(machine.host_bytes);
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
  if (extra == Extra::kWrite) WriteExtra(machine, json);
  json.EndObject();
}

absl::StatusOr<Machine> MachineFromJson(absl::string_view json) {
  LOADLINE_ASSIGN_OR_RETURN(const Json document, ParseJson(json));
  return ReadMachine(document);
}

std::string MachineToJson(const Machine& machine) {
  JsonWriter json;
  WriteMachine(machine, Extra::kWrite, json);
  return json.Take();
}

}  // namespace loadline::planner
