#include "cli/host/listener.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kListens[] = "0A";                         // the state TCP_LISTEN in /proc/net/tcp
constexpr std::string_view kOfPackage = "attune-loader";  // as packaging/portable.py names it

// Links in /proc/PID/fd of sockets that listen on the port: "socket:[12345]".
std::set<std::string> SocketsOn(int port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // titles
    while (std::getline(file, line)) {
      // `0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000 uid 0 inode …`
      std::istringstream fields(line);
      std::string skipped, local, state, inode;
      fields >> skipped >> local >> skipped >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      const size_t colon = local.rfind(':');
      if (!fields || state != kListens || colon == std::string::npos) continue;
      if (std::stoi(local.substr(colon + 1), nullptr, 16) != port) continue;
      sockets.insert("socket:[" + inode + "]");
    }
  }
  return sockets;
}

bool HasAny(const fs::path& descriptors, const std::set<std::string>& sockets) {
  std::error_code failed;
  for (fs::directory_iterator each(descriptors, failed), end; !failed && each != end;
       each.increment(failed)) {
    std::error_code unreadable;
    if (sockets.contains(fs::read_symlink(each->path(), unreadable).string())) return true;
  }
  return false;
}

std::string ProgramOf(const fs::path& process) {
  std::ifstream file(process / "comm");
  std::string name;
  std::getline(file, name);
  return name == kOfPackage ? "attune" : name;
}

}  // namespace

std::optional<Listener> FindListener(int port) {
  const std::set<std::string> sockets = SocketsOn(port);
  if (sockets.empty()) return std::nullopt;
  std::error_code failed;
  for (fs::directory_iterator each("/proc", failed), end; !failed && each != end;
       each.increment(failed)) {
    const std::string pid = each->path().filename();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c); }))
      continue;
    if (HasAny(each->path() / "fd", sockets))
      return Listener{.pid = std::stoi(pid), .program = ProgramOf(each->path())};
  }
  return std::nullopt;
}

}  // namespace attune::cli
