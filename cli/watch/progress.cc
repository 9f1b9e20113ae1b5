#include "cli/watch/progress.h"

#include "cli/text/width.h"
#include "cli/watch/clock.h"
#include "cli/watch/event_data.h"
#include "cli/watch/event_line.h"
#include "cli/watch/live_view.h"

namespace attune::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawPeriod{250};
constexpr std::chrono::seconds kClockRedrawPeriod{1};  // for the elapsed time in the block
// The time without output after which plain text gets a summary. It grows after the first minutes,
// so that long logs stay short.
constexpr std::chrono::seconds kSilenceAtFirst{10};
constexpr std::chrono::seconds kSilenceLater{60};
constexpr std::chrono::minutes kFrequentFor{10};

class LiveBlock final : public Progress {
 public:
  explicit LiveBlock(Output& output) : output_(output) {}

  // Prints each decision above the block, so that it stays readable.
  void OnEvent(const ServerEvent& event, const SweepModel& sweep) override {
    changed_ = true;
    if (event.kind == "trial_changed") {
      const std::optional<int64_t> trial = ReadEvent(event).trial;
      if (!trial.has_value() || sweep.trials().at(*trial).state == "running") return;
    } else if (event.kind != "attempt_changed") {
      return;
    }
    const std::string line = EventLine(event, sweep);
    if (!line.empty()) output_.Print(Clip(line, output_.width() - 1));
  }

  void Tick(const SweepModel& sweep, Clock::time_point now) override {
    const auto since = now - drawn_;
    if (since < kRedrawPeriod || (!changed_ && since < kClockRedrawPeriod)) return;
    Draw(sweep);
    drawn_ = now;
    changed_ = false;
  }

  void Note(std::string_view line) override { output_.Print(line); }

  void Finish(const SweepModel& sweep) override {
    Draw(sweep);
    output_.Leave();
  }

 private:
  void Draw(const SweepModel& sweep) {
    output_.Draw(LiveView(sweep, output_.style(), output_.size(), SecondsSince1970()));
  }

  Output& output_;
  Clock::time_point drawn_{};
  bool changed_ = true;
};

class PlainLines final : public Progress {
 public:
  explicit PlainLines(Output& output) : output_(output) {}

  void OnEvent(const ServerEvent& event, const SweepModel& sweep) override {
    const std::string line = EventLine(event, sweep);
    if (!line.empty()) Print(line);
  }

  void Tick(const SweepModel& sweep, Clock::time_point now) override {
    if (const std::string reason = sweep.idle_reason(); reason != idle_reason_) {
      idle_reason_ = reason;
      if (!reason.empty()) Print("waiting: " + Clean(reason));
    }
    const auto silence = now - started_ < kFrequentFor ? kSilenceAtFirst : kSilenceLater;
    if (now - printed_ >= silence) Print(SummaryLine(sweep));
  }

  void Note(std::string_view line) override { Print(line); }
  void Finish(const SweepModel& sweep) override { Print(SummaryLine(sweep)); }

 private:
  void Print(std::string_view line) {
    output_.Print(line);
    printed_ = Clock::now();
  }

  Output& output_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point printed_ = started_;
  std::string idle_reason_;
};

class JsonLines final : public Progress {
 public:
  JsonLines(Output& output, Output& notes) : output_(output), notes_(notes) {}

  void OnEvent(const ServerEvent& event, const SweepModel&) override {
    Json line = {{"event", event.kind}};
    line.update(event.data);
    output_.Print(Dump(line));
  }

  void Tick(const SweepModel&, Clock::time_point) override {}
  void Note(std::string_view line) override { notes_.Print(line); }
  void Finish(const SweepModel&) override {}

 private:
  Output& output_;
  Output& notes_;
};

class OnlyNotes final : public Progress {
 public:
  explicit OnlyNotes(Output& notes) : notes_(notes) {}
  void OnEvent(const ServerEvent&, const SweepModel&) override {}
  void Tick(const SweepModel&, Clock::time_point) override {}
  void Note(std::string_view line) override { notes_.Print(line); }
  void Finish(const SweepModel&) override {}

 private:
  Output& notes_;
};

}  // namespace

std::unique_ptr<Progress> MakeTextProgress(Output& output) {
  if (output.live()) return std::make_unique<LiveBlock>(output);
  return std::make_unique<PlainLines>(output);
}

std::unique_ptr<Progress> MakeJsonProgress(Output& output, Output& notes) {
  return std::make_unique<JsonLines>(output, notes);
}

std::unique_ptr<Progress> MakeQuietProgress(Output& notes) {
  return std::make_unique<OnlyNotes>(notes);
}

}  // namespace attune::cli
