"""ScreenSpot, ScreenSpot-v2 and ScreenSpot-Pro: where is what an instruction means?"""
