import type { SweepCost } from '../api/contract';
import { formatCount, plural } from './numbers';

/** Three significant digits, and no fraction from 100 on: "0.0123", "12.5", "1,204". */
export function formatHours(hours: number): string {
  if (hours >= 100) return formatCount(Math.round(hours));
  return String(Number(hours.toPrecision(3)));
}

/** "25.00 EUR" */
export function formatMoney(amount: number, currency: string): string {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `${amount.toLocaleString('en-GB', digits)} ${currency}`.trim();
}

export const hoursUnit = ({ resource }: SweepCost): string =>
  resource === 'gpu' ? 'GPU hours' : 'worker hours';

export interface CostPart {
  name: 'used' | 'wasted' | 'saved';
  hours: number;
  /** Empty without a price. */
  money: string;
  /** For a tooltip. */
  meaning: string;
}

/** The parts of a cost that the card compares. The saved hours are missing if they are unknown. */
export function costParts({ price, used_hours, wasted_hours, saved_hours }: SweepCost): CostPart[] {
  const money = (amount: number | null | undefined): string =>
    price && amount != null ? formatMoney(amount, price.currency) : '';
  const parts: CostPart[] = [
    {
      name: 'used',
      hours: used_hours,
      money: money(price?.used),
      meaning: 'Time in which attempts held their slots',
    },
    {
      name: 'wasted',
      hours: wasted_hours,
      money: money(price?.wasted),
      meaning: 'Time of attempts after the last checkpoint from which their trial continued',
    },
  ];
  if (saved_hours !== null) {
    parts.push({
      name: 'saved',
      hours: saved_hours,
      money: money(price?.saved),
      meaning: 'Estimate: time that stopped trials would have needed for their other steps',
    });
  }
  return parts;
}

/** "9 attempts, 2 running, 3 failed or lost; 5 trials stopped early." */
export function costSentence({ attempts, running, broken, stopped }: SweepCost): string {
  const parts = [plural(attempts, 'attempt')];
  if (running > 0) parts.push(`${formatCount(running)} running`);
  if (broken > 0) parts.push(`${formatCount(broken)} failed or lost`);
  const text = parts.join(', ');
  return stopped > 0 ? `${text}; ${plural(stopped, 'trial')} stopped early.` : `${text}.`;
}
