#pragma once

// Drivers of worker groups, by the first argument of the driver program that picks each. What they
// find is printed, a line each.
namespace group {

void Averages();
void AveragesOfOthers();
void BesideATrainer();
void Calls();
void Constructor();
void Docs();
void Exits();
void Hangs();
void Killed();
void Large();
void Misuse();
void Parallel();
void Stopped();
void Throws();
void Travels();
void TwoGroups();
void Workers();

// A byte from a worker to the driver, by a pipe that is older than both.
void Tell(char what);
char Hear();

}  // namespace group
