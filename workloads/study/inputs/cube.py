# Renders a cube, a monkey and a floor to /out/image.bmp: blender -b -P cube.py -- WIDTH HEIGHT SAMPLES
import os
import sys
import bpy

width, height, samples = [int(word) for word in sys.argv[-3:]]
scene = bpy.context.scene
scene.render.engine = "CYCLES"
scene.cycles.samples = samples
scene.cycles.use_denoising = False
scene.cycles.use_adaptive_sampling = False
scene.render.resolution_x = width
scene.render.resolution_y = height
scene.render.resolution_percentage = 100
scene.render.threads_mode = "FIXED"
scene.render.threads = 1
scene.render.image_settings.file_format = "BMP"
scene.render.use_stamp = False
scene.render.filepath = "/out/image.bmp"
bpy.ops.mesh.primitive_monkey_add(location=(2, 0, 0))
bpy.ops.mesh.primitive_plane_add(size=20, location=(0, 0, -1))
os.system("tipsim-region start")   # what comes before is Blender's start
bpy.ops.render.render(write_still=True)
os.system("tipsim-region stop")
