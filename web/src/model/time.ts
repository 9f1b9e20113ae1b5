/** Milliseconds since 1970. Date drops the microseconds that the server sends. */
export function parseTime(text: string): number {
  return Date.parse(text);
}

/** "0.8 s", "12 s", "4 min 05 s", "3 h 12 min", "2 d 4 h". */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '–';
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, '0')} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** For an axis with this distance between labels: "20 s", "15 min", "3 h", "2 d". */
export function formatSpan(seconds: number, apart: number): string {
  const units = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
  ] as const;
  const whole = units.find(([unit]) => apart >= unit && apart % unit === 0);
  if (!whole) return `${Number(seconds.toPrecision(6))} s`;
  return `${Math.round(seconds / whole[0])} ${whole[1]}`;
}

/** "just now", "5 min ago", "3 h ago", "2 d ago". */
export function formatAgo(time: number, now: number): string {
  const seconds = Math.max(0, (now - time) / 1000);
  if (seconds < 45) return 'just now';
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} d ago`;
}

/** In the time zone of the browser, to the second: "2026-11-21 10:00:04". */
export function formatClock(text: string | null): string {
  if (!text) return '–';
  const time = new Date(parseTime(text));
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}
