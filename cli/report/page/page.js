// Draws the plots of the page from the JSON in it. Everything else of the page is there without this script.
(function () {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // 1234567 -> "1.23M": for axes.
  function short(value) {
    const size = Math.abs(value);
    for (const [unit, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
      if (size >= unit) return +(value / unit).toPrecision(4) + letter;
    }
    return String(+value.toPrecision(4));
  }

  // Microseconds in the unit that suits them.
  function duration(us) {
    const size = Math.abs(us);
    if (size >= 1e6) return +(us / 1e6).toPrecision(4) + ' s';
    if (size >= 1e3) return +(us / 1e3).toPrecision(4) + ' ms';
    if (size >= 1 || size === 0) return +us.toPrecision(4) + ' µs';
    return +(us * 1e3).toPrecision(4) + ' ns';
  }

  const full = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 7 });

  // How a value of a unit is written on an axis and in the legend.
  function writer(unit, onAxis) {
    if (unit === 'us') return duration;
    if (unit === '%') return (value) => +value.toPrecision(3) + '%';
    if (unit === 's') return (value) => +value.toPrecision(6) + ' s';
    return onAxis ? short : (value) => full.format(value);
  }

  // Distances between marks of an axis that counts.
  const whole = [];
  for (let power = 1; power < 1e9; power *= 10) whole.push(power, 2 * power, 5 * power);

  function axis(scale, label, unit) {
    const write = writer(unit, true);
    return {
      scale: scale,
      label: label,
      labelSize: 22,
      size: scale === 'y' ? 64 : 40,
      font: '12px system-ui, sans-serif',
      labelFont: '12px system-ui, sans-serif',
      stroke: color('--soft'),
      grid: { stroke: color('--line'), width: 1 },
      ticks: { stroke: color('--line'), width: 1 },
      incrs: scale === 'x' && unit === '' ? whole : undefined,
      values: (u, values) => values.map((value) => (value === null ? '' : write(value))),
    };
  }

  // Log axes have room for powers of ten only; values that span little need no log axis.
  function spans(series) {
    let least = Infinity;
    let most = 0;
    for (const one of series) {
      for (const y of one.y) {
        if (y <= 0) return 1;
        least = Math.min(least, y);
        most = Math.max(most, y);
      }
    }
    return most / least;
  }

  function options(plot, view, width) {
    const logarithmic = plot.log_y === true && spans(view.series) > 30;
    const bare = (one) => plot.points || one.marks;
    const series = view.series.map((one, i) => ({
      label: one.name,
      stroke: color('--s' + (one.color === undefined ? i : one.color) % 8),
      width: 2,
      spanGaps: true,
      paths: plot.steps ? uPlot.paths.stepped({ align: 1 }) : bare(one) ? () => null : undefined,
      points: bare(one)
        ? { show: one.marks ? crosses : true, size: one.marks ? 12 : 7, fill: color('--page') }
        : { fill: color('--page') },
      value: (u, value) => (value === null || value === undefined ? '-' : writer(plot.y_unit, false)(value)),
    }));
    return {
      width: width,
      height: 320,
      scales: {
        x: { time: false, distr: plot.log_x ? 3 : 1 },
        y: logarithmic ? { distr: 3 } : { range: (u, min, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: [axis('x', plot.x_label, plot.x_unit), axis('y', plot.y_label, plot.y_unit)],
      series: [
        {
          label: plot.x_name,
          value: (u, value) => (value === null || value === undefined ? '-' : writer(plot.x_unit, false)(value)),
        },
        ...series,
      ],
      cursor: { points: { size: 7 } },
    };
  }

  // Marks of values to compare with, so that they are not taken for a line's own points.
  function crosses(u, i, first, last) {
    const context = u.ctx;
    const size = 6 * devicePixelRatio;
    context.save();
    context.strokeStyle = u.series[i].stroke(u, i);
    context.lineWidth = 2 * devicePixelRatio;
    context.beginPath();
    for (let at = first; at <= last; ++at) {
      const value = u.data[i][at];
      if (value === null || value === undefined) continue;
      const x = u.valToPos(u.data[0][at], 'x', true);
      const y = u.valToPos(value, 'y', true);
      context.moveTo(x - size, y);
      context.lineTo(x + size, y);
      context.moveTo(x, y - size);
      context.lineTo(x, y + size);
    }
    context.stroke();
    context.restore();
    return false;
  }

  function tables(view) {
    if (view.series.length === 1) return [view.series[0].x, view.series[0].y];
    return uPlot.join(view.series.map((one) => [one.x, one.y]));
  }

  const redraws = [];

  for (const plot of data.plots) {
    const section = document.getElementById(plot.id);
    const chart = section.querySelector('.chart');
    let chosen = 0;
    let drawn = null;

    function draw() {
      if (drawn !== null) drawn.destroy();
      const view = plot.views[chosen];
      drawn = new uPlot(options(plot, view, chart.clientWidth), tables(view), chart);
    }

    if (plot.views.length > 1) {
      const buttons = section.querySelector('.views');
      plot.views.forEach((view, i) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = view.name;
        button.setAttribute('aria-pressed', String(i === chosen));
        button.addEventListener('click', () => {
          chosen = i;
          for (const each of buttons.children) each.setAttribute('aria-pressed', String(each === button));
          draw();
        });
        buttons.appendChild(button);
      });
    }
    draw();
    redraws.push(draw);
    new ResizeObserver(() => {
      if (drawn.width !== chart.clientWidth && chart.clientWidth > 0) {
        drawn.setSize({ width: chart.clientWidth, height: 320 });
      }
    }).observe(chart);
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraws.forEach((draw) => draw()));
})();
