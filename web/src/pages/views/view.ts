import type { ComponentChildren } from 'preact';

import type { SweepModel, TrialRow } from '../../model/sweep_model';

/** The properties of a view whose code is read on demand. */
export interface ViewProps {
  model: SweepModel;
  /** Grows with every change of the model. */
  version: number;
  /** The rows of the table. */
  rows: readonly TrialRow[];
  selected: number | undefined;
  hovered: number | undefined;
  onHover(number: number | undefined): void;
  /** Called when the user clicks the point of a trial. */
  onOpen(number: number): void;
  /** The choice among the views. */
  views: ComponentChildren;
}
