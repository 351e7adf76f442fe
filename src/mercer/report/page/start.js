"use strict";
mercer.scree();
mercer.scatter();
mercer.errors();
for (const draw of mercer.charts) draw();
document.documentElement.dataset.ready = "yes";
