// A worker without LibTorch, for tests. It uses the worker channel and the launcher protocol of
// docs/reference/worker-channel.md, and runs the commands in its arguments in order.
//
//   [R/]VERB[:ARGUMENT]   only on rank R, if given
//
// A file next to the program makes its launcher fail: with PROGRAM.mute it never answers a fork
// request, with PROGRAM.broken it exits before it is ready, and with PROGRAM.gate it is not ready
// until the file is opened.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "system/sockets.h"
#include "system/unix_sockets.h"

namespace {

using Json = nlohmann::ordered_json;

struct LauncherNote {
  uint32_t owner_bytes = 7;
  uint32_t descriptor_bytes = 4;
  uint32_t type = 1;
  char owner[8] = "Attune";
  uint32_t version = 1;
};
#ifdef ATTUNE_TEST_LAUNCHER
[[gnu::section(".note.attune"), gnu::used]] const LauncherNote kNote;
#endif

int channel = -1;

void Write(std::string bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) _exit(99);
    bytes.erase(0, count);
  }
}

void Send(const Json& message) { Write(message.dump() + "\n"); }

Json ReadLine() {
  static std::string buffer;
  size_t newline;
  while ((newline = buffer.find('\n')) == std::string::npos) {
    char bytes[4096];
    const ssize_t count = read(channel, bytes, sizeof bytes);
    if (count <= 0) _exit(98);
    buffer.append(bytes, count);
  }
  const std::string line = buffer.substr(0, newline);
  buffer.erase(0, newline + 1);
  return Json::parse(line);
}

// Makes this process use a new connection to the executor's socket.
void Connect() {
  const auto connected = attune::ConnectToPath(getenv("ATTUNE_CHANNEL"));
  if (!connected.ok()) _exit(93);
  channel = dup(connected.value().get());
}

// Joins as rank R of W ("R/W") and prints the answer.
void Join(const std::string& place) {
  Connect();
  const int rank = std::stoi(place);
  const int world_size = std::stoi(place.substr(place.find('/') + 1));
  Send({{"type", "join"},
        {"rank", rank},
        {"world_size", world_size},
        {"local_rank", rank},
        {"local_world_size", world_size}});
  std::cout << ReadLine().dump() << std::endl;
}

[[noreturn]] void Hang() {
  for (;;) pause();
}

std::string told_file;  // for SIGTERM

// From now on, SIGTERM makes a file or writes to a FIFO, and ends this process.
void TrapSigterm(const std::string& file) {
  told_file = file;
  signal(SIGTERM, [](int) {
    const int told = open(told_file.c_str(), O_WRONLY | O_CREAT, 0600);
    _exit(told >= 0 ? 0 : 93);
  });
}

// Starts a child that traps SIGTERM before this function returns; this process does not trap it.
// With `is_orphan`, the child has no parent.
void StartHeir(const std::string& file, bool in_own_session, bool is_orphan = false) {
  TrapSigterm(file);
  const pid_t parent = is_orphan ? fork() : 0;
  if (parent > 0) {
    waitpid(parent, nullptr, 0);
    signal(SIGTERM, SIG_DFL);
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    if (in_own_session) setsid();
    Hang();
  }
  signal(SIGTERM, SIG_DFL);
  std::cout << "heir " << pid << std::endl;
  if (is_orphan) _exit(0);
}

void Do(const std::string& verb, const std::string& argument) {
  const auto step = [&] { return std::stoll(argument); };
  if (verb == "progress") Send({{"type", "progress"}, {"step", step()}});
  if (verb == "report") {
    Send({{"type", "report"}, {"step", step()}, {"seconds", 0.5}, {"metrics", {{"loss", 0.25}}}});
  }
  if (verb == "log") {
    Send({{"type", "log"}, {"step", std::stod(argument)}, {"metrics", {{"loss", 0.5}}}});
  }
  if (verb == "ask") {
    Send({{"type", "report"},
          {"step", step()},
          {"seconds", 0},
          {"metrics", Json::object()},
          {"waits", true}});
  }
  if (verb == "checkpoint") {
    Send({{"type", "checkpoint"},
          {"step", 1},
          {"path", argument},
          {"digest", "sha256:" + std::string(64, 'a')},
          {"bytes", 12}});
  }
  if (verb == "rendezvous") {
    Send({{"type", "rendezvous"}, {"host", "127.0.0.1"}, {"port", step()}});
  }
  if (verb == "lost") Send({{"type", "error"}, {"message", argument}, {"lost_peer", true}});
  if (verb == "heartbeat") Send({{"type", "heartbeat"}, {"silence_ms", step()}});
  // The rest runs in a child, which joins as a descendant; this process waits for its end.
  if (verb == "below" && fork() > 0) {
    int status = 0;
    wait(&status);
    _exit(WEXITSTATUS(status));
  }
  // The same, but this process stays after the end of the child.
  if (verb == "wrapped" && fork() > 0) Hang();
  // A program that joins as R of W ("R/W") and exits, or stays.
  if (verb == "visit" || verb == "lodge") {
    std::cout.flush();
    int joined[2];
    if (pipe2(joined, O_CLOEXEC) != 0) _exit(94);
    const pid_t pid = fork();
    if (pid == 0) {
      Join(argument);
      if (verb == "visit") _exit(0);
      close(joined[1]);
      Hang();
    }
    close(joined[1]);
    char none;
    if (read(joined[0], &none, 1) != 0) _exit(94);
    if (verb == "visit") waitpid(pid, nullptr, 0);
  }
  if (verb == "connect") Connect();
  if (verb == "join") Join(argument);
  if (verb == "claim") {
    Send({{"type", "claim"}});
    std::cout << ReadLine().dump() << " " << getpid() << std::endl;
  }
  if (verb == "waiting") Send({{"type", "waiting"}, {"ranks", {step()}}, {"step", 2}});
  if (verb == "leaving") Send({{"type", "leaving"}, {"message", argument}});
  if (verb == "error") Send({{"type", "error"}, {"message", argument}});
  if (verb == "full") Send({{"type", "error"}, {"message", argument}, {"disk_full", true}});
  if (verb == "done") Send({{"type", "done"}});
  if (verb == "raw") Write(argument + "\n");
  if (verb == "flood") Write(std::string(step(), 'x'));
  // Reads a line and repeats it in the log.
  if (verb == "read") std::cout << ReadLine().dump() << std::endl;
  if (verb == "verdict") {
    const Json verdict = ReadLine();
    std::cout << verdict.dump() << std::endl;
    if (verdict["action"] != "continue") _exit(0);
  }
  if (verb == "print") std::cout << argument << std::endl;
  if (verb == "env") {
    const char* value = getenv(argument.c_str());
    std::cout << argument << "=" << (value ? value : "(unset)") << std::endl;
  }
  if (verb == "cwd") std::cout << std::filesystem::current_path().string() << std::endl;
  // A child that would outlive the rank.
  if (verb == "grandchild") {
    const pid_t pid = fork();
    if (pid == 0) Hang();
    std::cout << "grandchild " << pid << std::endl;
  }
  // A child that leaves the rank's group and session, and is forked without an exec.
  if (verb == "daemon") {
    const pid_t pid = fork();
    if (pid == 0) {
      setsid();
      Hang();
    }
    std::cout << "daemon " << pid << std::endl;
  }
  // An orphan without the environment of its rank.
  if (verb == "nobody") {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) _exit(94);
    if (fork() == 0) {
      setsid();
      const pid_t pid = fork();
      if (pid > 0) _exit(write(ends[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
      char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("1000"), nullptr};
      char* const nothing[] = {nullptr};
      execve("/bin/sleep", words, nothing);
      _exit(1);
    }
    pid_t pid = 0;
    if (read(ends[0], &pid, sizeof pid) != sizeof pid) _exit(94);
    std::cout << "nobody " << pid << std::endl;
  }
  if (verb == "trap") TrapSigterm(argument);
  if (verb == "deaf") signal(SIGTERM, SIG_IGN);
  if (verb == "heir") StartHeir(argument, false);
  if (verb == "far-heir") StartHeir(argument, true);
  if (verb == "orphan-heir") StartHeir(argument, true, true);
  if (verb == "parent") std::cout << "parent " << getppid() << std::endl;
  if (verb == "kill") raise(static_cast<int>(step()));
  if (verb == "exit") _exit(static_cast<int>(step()));
  if (verb == "hang") Hang();
}

int Work(const std::vector<std::string>& words) {
  const char* fd = getenv("ATTUNE_CHANNEL_FD");
  channel = fd ? atoi(fd) : -1;
  const Json start = ReadLine();
  if (start["type"] != "start") return 97;
  std::cout << start.dump() << std::endl;
  for (std::string word : words) {
    if (word.size() > 2 && word[1] == '/') {
      if (word[0] - '0' != start["rank"]) continue;
      word.erase(0, 2);
    }
    const size_t colon = word.find(':');
    Do(word.substr(0, colon), colon == std::string::npos ? "" : word.substr(colon + 1));
  }
  return 0;
}

// Sends a packet, with a descriptor if it is not negative.
void SendPacket(int socket, const Json& packet, int descriptor = -1) {
  std::string text = packet.dump();
  iovec data{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Receives a packet and its two descriptors; a null packet at the end.
Json ReceivePacket(int socket, int (&descriptors)[2]) {
  static char bytes[64 * 1024];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
  iovec data{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (count <= 0) return nullptr;
  if (cmsghdr* header = CMSG_FIRSTHDR(&message)) {
    std::memcpy(descriptors, CMSG_DATA(header), sizeof descriptors);
  }
  return Json::parse(std::string(bytes, count));
}

void JoinCgroup(const std::string& folder) {
  const int threads = open((folder + "/cgroup.threads").c_str(), O_WRONLY);
  if (threads < 0 || write(threads, "0", 1) != 1) _exit(95);
  close(threads);
}

// In the child: becomes the rank that the packet describes.
int BecomeRank(const Json& fork, int channel_fd, int log_fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(log_fd, 1);
  dup2(log_fd, 2);
  fcntl(channel_fd, F_SETFD, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const auto& [name, value] : fork["env"].items()) {
    if (name == "ATTUNE_CGROUP") {
      JoinCgroup(value);
      continue;
    }
    if (value.is_null()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.get<std::string>().c_str(), 1);
    }
  }
  setenv("ATTUNE_CHANNEL_FD", std::to_string(channel_fd).c_str(), 1);
  unsetenv("ATTUNE_LAUNCHER_FD");
  const auto cwd = fork["cwd"].get<std::string>();
  if (!cwd.empty() && chdir(cwd.c_str()) != 0) return 96;
  auto words = fork["argv"].get<std::vector<std::string>>();
  words.erase(words.begin());
  return Work(words);
}

int Launch(int socket, const std::string& self) {
  if (std::filesystem::exists(self + ".broken")) {
    std::cout << "cannot load a library" << std::endl;
    return 7;
  }
  // Loads until somebody opens the gate, a FIFO, for writing.
  if (const int gate = open((self + ".gate").c_str(), O_RDONLY); gate >= 0) close(gate);
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_signal, nullptr);
  const int signals = signalfd(-1, &child_signal, SFD_CLOEXEC);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  SendPacket(socket, {{"type", "ready"}, {"protocol", 1}, {"pid", getpid()}});

  std::set<pid_t> groups;
  for (;;) {
    pollfd fds[2] = {{socket, POLLIN, 0}, {signals, POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[1].revents != 0) {
      signalfd_siginfo info;
      [[maybe_unused]] const ssize_t got = read(signals, &info, sizeof info);
      int status;
      pid_t pid;
      while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        Json exited{{"type", "exited"}, {"pid", pid}};
        if (WIFSIGNALED(status)) {
          exited["signal"] = WTERMSIG(status);
        } else {
          exited["exit_code"] = WEXITSTATUS(status);
        }
        SendPacket(socket, exited);
      }
    }
    if (fds[0].revents == 0) continue;
    int descriptors[2] = {-1, -1};
    const Json fork_packet = ReceivePacket(socket, descriptors);
    if (!fork_packet.is_object()) break;
    if (std::filesystem::exists(self + ".mute")) continue;
    const pid_t pid = fork();
    if (pid == 0) {
      close(socket);
      close(signals);
      return BecomeRank(fork_packet, descriptors[0], descriptors[1]);
    }
    const pid_t group = fork_packet["process_group"].get<pid_t>();
    setpgid(pid, group == 0 ? pid : group);
    groups.insert(group == 0 ? pid : group);
    close(descriptors[0]);
    close(descriptors[1]);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    SendPacket(socket, {{"type", "forked"}, {"request", fork_packet["request"]}, {"pid", pid}},
               pidfd);
    close(pidfd);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* fd = getenv("ATTUNE_LAUNCHER_FD")) return Launch(atoi(fd), argv[0]);
  return Work({argv + 1, argv + argc});
}
