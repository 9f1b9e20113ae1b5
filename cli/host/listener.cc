#include "cli/host/listener.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kListenState[] = "0A";  // TCP_LISTEN in /proc/net/tcp
// The loader in the portable package (packaging/portable.py), whose name the kernel reports.
constexpr std::string_view kPackageLoader = "attune-loader";

struct ListeningSocket {
  uid_t user = 0;
  std::string link;  // target of a link in /proc/PID/fd: "socket:[12345]"
};

std::vector<ListeningSocket> FindListeningSockets(int port) {
  std::vector<ListeningSocket> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // column titles
    while (std::getline(file, line)) {
      // `0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000 uid 0 inode …`
      std::istringstream fields(line);
      std::string skipped, local, state, inode;
      uid_t user = 0;
      fields >> skipped >> local >> skipped >> state;
      for (int i = 0; i < 3; ++i) fields >> skipped;
      fields >> user >> skipped >> inode;
      const size_t colon = local.rfind(':');
      if (!fields || state != kListenState || colon == std::string::npos) continue;
      if (std::stoi(local.substr(colon + 1), nullptr, 16) != port) continue;
      sockets.push_back({.user = user, .link = "socket:[" + inode + "]"});
    }
  }
  return sockets;
}

// `descriptors`: a folder /proc/PID/fd.
bool HasAnySocket(const fs::path& descriptors, const std::vector<ListeningSocket>& sockets) {
  std::error_code failed;
  for (fs::directory_iterator each(descriptors, failed), end; !failed && each != end;
       each.increment(failed)) {
    std::error_code unreadable;
    const std::string link = fs::read_symlink(each->path(), unreadable);
    if (std::ranges::find(sockets, link, &ListeningSocket::link) != sockets.end()) return true;
  }
  return false;
}

std::string ProgramOf(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return name == kPackageLoader ? "attune" : name;
}

}  // namespace

std::optional<Listener> FindListener(int port) {
  const std::vector<ListeningSocket> sockets = FindListeningSockets(port);
  if (sockets.empty()) return std::nullopt;
  std::error_code failed;
  for (fs::directory_iterator each("/proc", failed), end; !failed && each != end;
       each.increment(failed)) {
    const std::string pid = each->path().filename();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c); }))
      continue;
    if (HasAnySocket(each->path() / "fd", sockets))
      return Listener{.pid = std::stoi(pid), .program = ProgramOf(each->path())};
  }
  return std::nullopt;
}

std::vector<uid_t> UsersListeningOn(int port) {
  std::vector<uid_t> users;
  for (const ListeningSocket& socket : FindListeningSockets(port)) users.push_back(socket.user);
  return users;
}

}  // namespace attune::cli
