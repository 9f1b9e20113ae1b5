#pragma once

// Drivers of worker groups. The first argument of the driver program selects one. Each prints its
// results, one per line.
namespace group {

void Averages();
void AveragesOfModules();
void WithATrainer();
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
void RoundTrips();
void TwoGroups();
void Workers();

// Sends a byte from a worker to the driver over a pipe that all of them share, and waits for one.
void SendToDriver(char what);
char AwaitByte();

}  // namespace group
