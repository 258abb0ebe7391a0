#include "planner/problem/certificate.h"

namespace loadline::planner {

absl::Span<const CertificateKind> RowKinds() {
  static constexpr CertificateKind kKinds[] = {
      {"need", "vnee"},      {"need_output", "ve"},    {"carry", "ve"},
      {"back", "ve"},        {"out_stays", "ve"},      {"decode", "vce"},
      {"encode", "vce"},     {"encoded_carry", "vce"}, {"input", "nve"},
      {"ran", "ne"},         {"order", "nne"},         {"input_once", "ve"},
      {"output_once", "ve"}, {"gone", "ne"},           {"home_carry", "ve"},
      {"home_end", "v"},     {"home_out", "ve"},       {"home_out_stays", "ve"},
      {"home_return", "v"},  {"home_need", "vnee"},    {"home_input", "vne"},
      {"budget", "e"},       {"rerun_fits", "ne"},     {"total", ""},
      {"compute", "e"},      {"outs_before", "e"},     {"outs_after", "e"},
      {"ins_from", "e"},     {"ins_before", "e"},      {"both_lanes", ""},
  };
  return kKinds;
}

absl::Span<const CertificateKind> ColumnKinds() {
  static constexpr CertificateKind kKinds[] = {
      {"keep", "ve"},     {"host", "ve"},      {"in", "ve"},
      {"encoded", "vce"}, {"decoded", "vce"},  {"once", "vc"},
      {"rerun", "ne"},    {"ran", "ne"},       {"taken", "vve"},
      {"home", "v"},      {"home_keep", "ve"}, {"home_in", "ve"},
      {"home_out", "ve"},
  };
  return kKinds;
}

}  // namespace loadline::planner
