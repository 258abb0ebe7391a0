// loadline.machine/2, field by field, and which of both versions a document is.
// Tested in tests/planner/problem/machine_json_test.cc and
// problem_json_test.cc.
#include "planner/problem/machine_json.h"

#include <cstdint>
#include <map>
#include <string>

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

constexpr char kMachineFormat[] = "loadline.machine/2";
constexpr char kFormat1[] = "loadline.machine/1";

absl::Status BadField(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("machine: field \"", field, "\" ", what));
}

absl::Status CheckCount(absl::string_view field, int64_t count) {
  if (count >= 0) return absl::OkStatus();
  return BadField(field, "must not be negative");
}

// The search counts in doubles, and adds this for each copy of a plan.
constexpr int64_t kMostCopyOverheadNs = 1'000'000'000'000'000'000;

absl::Status CheckCopyOverhead(int64_t overhead_ns) {
  LOADLINE_RETURN_IF_ERROR(CheckCount("copy_overhead_ns", overhead_ns));
  if (overhead_ns <= kMostCopyOverheadNs) return absl::OkStatus();
  return BadField("copy_overhead_ns", "must be at most 1e18");
}

absl::Status CheckFactor(absl::string_view field, double factor) {
  if (factor >= 0.001 && factor <= 1) return absl::OkStatus();
  return BadField(field, "must be from 0.001 to 1");
}

constexpr char kRateRange[] = "from 1 to 1e18 bytes per second";

absl::Status CheckLink(const Machine& machine, absl::string_view name,
                       const Link& link) {
  const bool old = machine.format_version == 1;
  LOADLINE_RETURN_IF_ERROR(
      CheckCount(old ? "copy_latency_ns" : absl::StrCat(name, ".latency_ns"),
                 link.latency_ns));
  // Below one byte per second, or above every real link: a mistake in the unit.
  const double rate = link.bytes_per_s;
  if (rate == 0 || (rate >= 1 && rate <= 1e18)) return absl::OkStatus();
  return BadField(absl::StrCat(name, old ? "_" : ".", "bytes_per_s"),
                  absl::StrCat(old ? "must be 0 or " : "must be ", kRateRange));
}

// A link that is missing has no copies, so one that is there has a rate.
absl::StatusOr<Link> ReadLink(absl::string_view name, const Json* json) {
  Link link;
  if (json == nullptr) return link;
  const std::string place = absl::StrCat("machine.", name);
  ObjectReader reader(*json, {place});
  link.bytes_per_s = reader.Number("bytes_per_s");
  link.latency_ns = reader.IntOr("latency_ns", 0);
  if (link.bytes_per_s == 0) {
    reader.Fail("bytes_per_s", absl::StrCat("must be ", kRateRange));
  }
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  return link;
}

void WriteLink(absl::string_view name, const Link& link, JsonWriter& json) {
  if (link.bytes_per_s == 0) return;
  json.Key(name).BeginObject().Key("bytes_per_s").Number(link.bytes_per_s);
  if (link.latency_ns != 0) json.Key("latency_ns").Int(link.latency_ns);
  json.EndObject();
}

void WriteFactor(absl::string_view name, double factor, JsonWriter& json) {
  if (factor != 1) json.Key(name).Number(factor);
}

// What no plan depends on, or what nodes and their workspaces have already.
void WriteOutsideHash(const Machine& machine, JsonWriter& json) {
  if (machine.nominal) json.Key("nominal").Bool(true);
  if (!machine.algorithms.empty()) {
    json.Key("algorithms").BeginObject();
    for (const auto& [key, name] : machine.algorithms) {
      json.Key(key).String(name);
    }
    json.EndObject();
  }
  WriteOps(machine, json);
}

absl::StatusOr<Machine> ReadMachine2(const Json& json) {
  Machine machine;
  ObjectReader reader(json, {"machine"});
  reader.Any("format");
  machine.name = reader.String("name");
  machine.device_bytes = reader.Int("device_bytes");
  machine.reserved_bytes = reader.Int("reserved_bytes");
  machine.host_bytes = reader.Int("host_bytes");
  machine.disk_bytes = reader.IntOr("disk_bytes", 0);
  const Json* d2h = reader.Find("d2h");
  const Json* h2d = reader.Find("h2d");
  const Json* write = reader.Find("write");
  const Json* read = reader.Find("read");
  machine.d2h_h2d_factor = reader.NumberOr("d2h_h2d_factor", 1.0);
  machine.write_read_factor = reader.NumberOr("write_read_factor", 1.0);
  machine.copy_overhead_ns = reader.IntOr("copy_overhead_ns", 0);
  machine.copies_exclude_compute =
      reader.BoolOr("copies_exclude_compute", false);
  machine.nominal = reader.BoolOr("nominal", false);
  const Json* algorithms = reader.Find("algorithms");
  const Json* ops = reader.Find("ops");
  const Json* rates = reader.Find("rates");
  LOADLINE_RETURN_IF_ERROR(reader.Finish());
  LOADLINE_ASSIGN_OR_RETURN(machine.d2h, ReadLink("d2h", d2h));
  LOADLINE_ASSIGN_OR_RETURN(machine.h2d, ReadLink("h2d", h2d));
  LOADLINE_ASSIGN_OR_RETURN(machine.write, ReadLink("write", write));
  LOADLINE_ASSIGN_OR_RETURN(machine.read, ReadLink("read", read));
  if (algorithms != nullptr) {
    LOADLINE_RETURN_IF_ERROR(
        ReadAlgorithms(*algorithms, "machine.algorithms", machine));
  }
  LOADLINE_RETURN_IF_ERROR(ReadOps(ops, rates, machine));
  return machine;
}

}  // namespace

absl::Status ValidateMachine(const Machine& machine) {
  LOADLINE_RETURN_IF_ERROR(CheckCount("device_bytes", machine.device_bytes));
  LOADLINE_RETURN_IF_ERROR(
      CheckCount("reserved_bytes", machine.reserved_bytes));
  LOADLINE_RETURN_IF_ERROR(CheckCount("host_bytes", machine.host_bytes));
  LOADLINE_RETURN_IF_ERROR(CheckCount("disk_bytes", machine.disk_bytes));
  LOADLINE_RETURN_IF_ERROR(CheckCopyOverhead(machine.copy_overhead_ns));
  LOADLINE_RETURN_IF_ERROR(CheckLink(machine, "d2h", machine.d2h));
  LOADLINE_RETURN_IF_ERROR(CheckLink(machine, "h2d", machine.h2d));
  LOADLINE_RETURN_IF_ERROR(CheckLink(machine, "write", machine.write));
  LOADLINE_RETURN_IF_ERROR(CheckLink(machine, "read", machine.read));
  LOADLINE_RETURN_IF_ERROR(CheckFactor(
      machine.format_version == 1 ? "bidirectional" : "d2h_h2d_factor",
      machine.d2h_h2d_factor));
  return CheckFactor("write_read_factor", machine.write_read_factor);
}

absl::StatusOr<Machine> ReadMachine(const Json& json) {
  ObjectReader reader(json, {"machine"});
  const std::string format = reader.String("format");
  if (format != kMachineFormat && format != kFormat1) {
    reader.Fail("format", absl::StrCat("must be \"", kMachineFormat, "\" or \"",
                                       kFormat1, "\""));
  }
  if (!reader.ok()) return reader.Finish();
  LOADLINE_ASSIGN_OR_RETURN(const Machine machine, format == kMachineFormat
                                                       ? ReadMachine2(json)
                                                       : ReadMachine1(json));
  LOADLINE_RETURN_IF_ERROR(ValidateMachine(machine));
  return machine;
}

void WriteMachine(const Machine& machine, MachineFields fields,
                  JsonWriter& json) {
  json.BeginObject().Key("format").String(kMachineFormat);
  json.Key("name").String(machine.name);
  json.Key("device_bytes").Int(machine.device_bytes);
  json.Key("reserved_bytes").Int(machine.reserved_bytes);
  json.Key("host_bytes").Int(machine.host_bytes);
  if (machine.disk_bytes != 0) json.Key("disk_bytes").Int(machine.disk_bytes);
  WriteLink("d2h", machine.d2h, json);
  WriteLink("h2d", machine.h2d, json);
  WriteLink("write", machine.write, json);
  WriteLink("read", machine.read, json);
  WriteFactor("d2h_h2d_factor", machine.d2h_h2d_factor, json);
  WriteFactor("write_read_factor", machine.write_read_factor, json);
  if (machine.copy_overhead_ns != 0) {
    json.Key("copy_overhead_ns").Int(machine.copy_overhead_ns);
  }
  if (machine.copies_exclude_compute) {
    json.Key("copies_exclude_compute").Bool(true);
  }
  if (fields == MachineFields::kAll) WriteOutsideHash(machine, json);
  json.EndObject();
}

absl::StatusOr<Machine> MachineFromJson(absl::string_view json) {
  LOADLINE_ASSIGN_OR_RETURN(const Json document, ParseJson(json));
  LOADLINE_ASSIGN_OR_RETURN(Machine machine, ReadMachine(document));
  machine.format_version = 2;  // a profile has no hash to keep
  return machine;
}

std::string MachineToJson(const Machine& machine) {
  JsonWriter json;
  WriteMachine(machine, MachineFields::kAll, json);
  return json.Take();
}

}  // namespace loadline::planner
