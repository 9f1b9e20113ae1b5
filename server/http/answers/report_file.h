#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace attune::server {

// The HTML file of a report: the template (kReportTemplate) with the answers of the API that its
// page reads. web/src/report reads them by name.
class ReportFile {
 public:
  using Query = std::map<std::string, std::string, std::less<>>;

  // nullopt: the template has no place for the answers.
  static std::optional<ReportFile> Begin(std::string page, std::string_view title);

  // An answer in the form of the file. `path`: as requested, without /api/v1.
  static std::string Pack(std::string_view path, const Query& query, std::string_view body);

  // Adds packed answers.
  void Add(std::string_view packed) { begin_ += packed; }
  size_t bytes() const { return begin_.size() + end_.size(); }

  std::string Finish() && { return std::move(begin_.append(end_)); }

 private:
  ReportFile(std::string begin, std::string end) : begin_(std::move(begin)), end_(std::move(end)) {}

  std::string begin_;
  std::string end_;
};

}  // namespace attune::server
