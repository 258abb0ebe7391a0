// A leaf has one list of integers for each kind of row: the arguments and the
// multiplier of one row after the other, in the order of the kinds. Tested in
// tests/planner/problem/certificate_json_test.cc.
#include "planner/problem/certificate_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/status_macros.h"

namespace loadline::planner {
namespace {

class CertificateReader {
 public:
  explicit CertificateReader(const Problem& problem) {
    for (size_t v = 0; v < problem.values.size(); ++v) {
      values_[problem.values[v].file_id] = static_cast<int32_t>(v);
    }
    for (size_t n = 0; n < problem.nodes.size(); ++n) {
      nodes_[problem.nodes[n].file_id] = NodeId(static_cast<int32_t>(n));
    }
  }

  absl::StatusOr<Certificate> Read(const Json& json) {
    Certificate certificate;
    ObjectReader reader(json, {"plan.certificate"});
    const JsonArray& parts = reader.List("parts");
    LOADLINE_RETURN_IF_ERROR(reader.Finish());
    for (const Json& part : parts) {
      LOADLINE_RETURN_IF_ERROR(ReadPart(part, certificate));
    }
    return certificate;
  }

 private:
  absl::Status ReadPart(const Json& json, Certificate& certificate) {
    CertificatePart part;
    ObjectReader reader(json, {"plan.certificate.parts",
                               static_cast<int64_t>(certificate.parts.size())});
    part.cuts = reader.References("cuts", nodes_);
    if (reader.Find("until") != nullptr) {
      part.until = reader.Reference("until", nodes_, NodeId{-1});
    }
    const JsonArray& tree = reader.List("tree");
    LOADLINE_RETURN_IF_ERROR(reader.Finish());
    for (const Json& node : tree) {
      LOADLINE_RETURN_IF_ERROR(ReadTreeNode(node, part));
    }
    certificate.parts.push_back(std::move(part));
    return absl::OkStatus();
  }

  absl::Status ReadTreeNode(const Json& json, CertificatePart& part) {
    CertificateTreeNode node;
    ObjectReader reader(json, {"plan.certificate.parts.tree",
                               static_cast<int64_t>(part.tree.size())});
    node.branch = reader.Find("branch") != nullptr;
    if (node.branch) {
      ReadColumn(reader, node.column);
    } else {
      const Json& rows = reader.Any("rows");
      LOADLINE_RETURN_IF_ERROR(reader.Finish());
      LOADLINE_RETURN_IF_ERROR(ReadRows(rows, node.rows));
    }
    part.tree.push_back(std::move(node));
    return reader.Finish();
  }

  void ReadColumn(ObjectReader& reader, CertificateColumn& column) {
    const std::string name = reader.String("branch");
    const JsonArray& list = reader.List("arguments");
    const absl::Span<const CertificateKind> kinds = ColumnKinds();
    const auto kind =
        std::find_if(kinds.begin(), kinds.end(),
                     [&](const CertificateKind& k) { return k.name == name; });
    if (kind == kinds.end()) {
      reader.Fail("branch", "names no kind of column");
      return;
    }
    column.kind = static_cast<ColumnKind>(kind - kinds.begin());
    if (list.size() != kind->arguments.size()) {
      reader.Fail(
          "arguments",
          absl::StrCat("must have ", kind->arguments.size(), " numbers"));
      return;
    }
    ReadArguments(list, 0, *kind, "arguments", reader, column.arguments);
  }

  absl::Status ReadRows(const Json& json, std::vector<CertificateRow>& rows) {
    ObjectReader reader(json, {"plan.certificate.parts.tree.rows"});
    const absl::Span<const CertificateKind> kinds = RowKinds();
    for (size_t k = 0; k < kinds.size(); ++k) {
      const JsonArray& list = reader.ListOr(kinds[k].name);
      const size_t stride = kinds[k].arguments.size() + 1;
      if (list.size() % stride != 0) {
        reader.Fail(kinds[k].name,
                    absl::StrCat("must have ", stride, " numbers a row"));
      }
      for (size_t i = 0; reader.ok() && i < list.size(); i += stride) {
        CertificateRow row;
        row.kind = static_cast<RowKind>(k);
        ReadArguments(list, i, kinds[k], kinds[k].name, reader, row.arguments);
        row.multiplier = Integer(list[i + stride - 1], kinds[k].name, reader);
        rows.push_back(row);
      }
    }
    return reader.Finish();
  }

  void ReadArguments(const JsonArray& list, size_t first,
                     const CertificateKind& kind, absl::string_view field,
                     ObjectReader& reader, CertificateArguments& arguments) {
    for (size_t i = 0; i < kind.arguments.size(); ++i) {
      const int64_t number = Integer(list[first + i], field, reader);
      if (!reader.ok()) return;
      bool found = number <= INT32_MAX;
      if (kind.arguments[i] == 'v') {
        const auto place = values_.find(number);
        found = place != values_.end();
        if (found) arguments[i] = place->second;
      } else if (kind.arguments[i] == 'n') {
        const auto place = nodes_.find(number);
        found = place != nodes_.end();
        if (found) arguments[i] = static_cast<int32_t>(place->second);
      } else if (found) {
        arguments[i] = static_cast<int32_t>(number);
      }
      if (!found) {
        reader.Fail(field,
                    absl::StrCat("refers to ", number, ", which is nothing"));
        return;
      }
    }
  }

  static int64_t Integer(const Json& json, absl::string_view field,
                         ObjectReader& reader) {
    const int64_t* number = std::get_if<int64_t>(&json.value);
    if (number != nullptr && *number >= 0) return *number;
    reader.Fail(field, "must hold non-negative integers below 2^63");
    return 0;
  }

  absl::flat_hash_map<int64_t, int32_t> values_;
  absl::flat_hash_map<int64_t, NodeId> nodes_;
};

void WriteArguments(const CertificateKind& kind,
                    const CertificateArguments& arguments,
                    const Problem& problem, JsonWriter& json) {
  for (size_t i = 0; i < kind.arguments.size(); ++i) {
    int64_t number = arguments[i];
    if (kind.arguments[i] == 'v') number = problem.values[number].file_id;
    if (kind.arguments[i] == 'n') number = problem.nodes[number].file_id;
    json.Int(number);
  }
}

void WriteTreeNode(const CertificateTreeNode& node, const Problem& problem,
                   JsonWriter& json) {
  json.Line().BeginObject();
  if (node.branch) {
    const CertificateKind& kind =
        ColumnKinds()[static_cast<size_t>(node.column.kind)];
    json.Key("branch").String(kind.name).Key("arguments").BeginList();
    WriteArguments(kind, node.column.arguments, problem, json);
    json.EndList().EndObject();
    return;
  }
  json.Key("rows").BeginObject();
  const absl::Span<const CertificateKind> kinds = RowKinds();
  for (size_t k = 0; k < kinds.size(); ++k) {
    bool open = false;
    for (const CertificateRow& row : node.rows) {
      if (row.kind != static_cast<RowKind>(k)) continue;
      if (!open) json.Key(kinds[k].name).BeginList();
      open = true;
      WriteArguments(kinds[k], row.arguments, problem, json);
      json.Int(row.multiplier);
    }
    if (open) json.EndList();
  }
  json.EndObject().EndObject();
}

}  // namespace

absl::StatusOr<Certificate> ReadCertificate(const Json& json,
                                            const Problem& problem) {
  return CertificateReader(problem).Read(json);
}

void WriteCertificate(const Certificate& certificate, const Problem& problem,
                      JsonWriter& json) {
  json.BeginObject().Key("parts").BeginList();
  for (const CertificatePart& part : certificate.parts) {
    json.Line().BeginObject().Key("cuts").BeginList();
    for (NodeId cut : part.cuts) json.Int(problem.node(cut).file_id);
    json.EndList();
    if (part.until != NodeId{-1}) {
      json.Key("until").Int(problem.node(part.until).file_id);
    }
    json.Key("tree").BeginList();
    for (const CertificateTreeNode& node : part.tree) {
      WriteTreeNode(node, problem, json);
    }
    json.EndList().EndObject();
  }
  json.EndList().EndObject();
}

}  // namespace loadline::planner
