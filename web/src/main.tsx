import { render } from 'preact';

import { App } from './app';
import { startNotifier } from './live/notifier';
import { startRouter } from './router';
import './styles/index.css';
import { startTheme } from './ui/theme';

startTheme();
startRouter();
startNotifier();
render(<App />, document.getElementById('app') as HTMLElement);
