#include "cli/page_link.h"

#include "base/result.h"
#include "server/folder/browser_sessions.h"

namespace attune::cli {

std::string PageLink(const std::string& url, const std::filesystem::path& data_dir,
                     const Output& output) {
  if (output.width() > 0) {
    const Result<std::string> code = server::BrowserSessions(data_dir).CreateCode();
    if (code.ok()) return url + "/login?code=" + *code;
  }
  return url + "  (log in with the link that `attune login` prints)";
}

}  // namespace attune::cli
