import { render } from 'preact';

import { App } from './app';
import { startRouter } from './router';
import './styles/index.css';
import { startTheme } from './ui/theme';

startTheme();
startRouter();
render(<App />, document.getElementById('app') as HTMLElement);
